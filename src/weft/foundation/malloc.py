"""What the C library does with large blocks of memory that torch has done with: glibc's two settings for it.

Set for the whole process; where the C library is not glibc nothing happens.
"""

import ctypes
from contextlib import suppress

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""their names in malloc.h"""
MEGABYTE = 2**20


def keep_blocks_for_the_next_pass() -> None:
    """Predictions in passes of equal size: memory of one pass serves the next.

    Otherwise glibc returns it after each pass, and the system clears every page before it gives it out again: a
    twentieth of all processor time. These are the largest values that glibc would come to by itself.
    """
    _set(MMAP_THRESHOLD, 32 * MEGABYTE)
    _set(TRIM_THRESHOLD, 64 * MEGABYTE)


def give_blocks_back() -> None:
    """A server: each pass has another number of tokens, and blocks of other sizes.

    Kept for a next pass where they do not fit, they would make it grow by hundreds of megabytes. The tensors of a
    lonely request are smaller.
    """
    _set(MMAP_THRESHOLD, MEGABYTE)
    _set(TRIM_THRESHOLD, 2 * MEGABYTE)


def trim() -> None:
    """Give free memory back now, also where it lies between blocks that are in use; takes milliseconds."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _set(name: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").mallopt(name, value)
