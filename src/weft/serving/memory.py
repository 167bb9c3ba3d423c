"""Large tensors go back to the system when they are done with."""

import ctypes

MMAP_THRESHOLD = -3
"""glibc's name for it, from malloc.h"""
LARGE = 2**20
"""bytes; the tensors of a lonely request are smaller"""


def give_large_tensors_back() -> None:
    """Keep memory flat under load. Does nothing where the C library is not glibc.

    Every pass has another number of tokens, so its tensors have other sizes. glibc learns to keep such blocks for the
    next pass, where they do not fit, and a server would grow by hundreds of megabytes.
    """
    try:
        ctypes.CDLL("libc.so.6").mallopt(MMAP_THRESHOLD, LARGE)
    except (OSError, AttributeError):
        return
