"""malloc tuning: whether memory that torch frees returns to the system after a forward pass.

The settings hold for the whole process. Without glibc they have no effect.
"""

import ctypes
from contextlib import suppress

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in malloc.h."""
MEGABYTE = 2**20


def keep_blocks_for_the_next_pass() -> None:
    """Keep freed memory for predictions in passes of equal size: the next pass reuses the blocks.

    Otherwise glibc returns them after each pass, and the system zeroes every page before it allocates it again: 5 % of
    all CPU time. These are the largest values that glibc's dynamic thresholds reach.
    """
    _set(MMAP_THRESHOLD, 32 * MEGABYTE)
    _set(TRIM_THRESHOLD, 64 * MEGABYTE)


def give_large_blocks_back() -> None:
    """Return large freed blocks to the system, for a server whose passes differ in size.

    Blocks kept for a pass that they do not fit would make memory grow by hundreds of megabytes. The tensors of a
    usual pass of the server stay below the threshold: returning those too costs 1.5 ms of CPU time per request.
    """
    _set(MMAP_THRESHOLD, 8 * MEGABYTE)
    _set(TRIM_THRESHOLD, 64 * MEGABYTE)


def trim() -> None:
    """Return free memory to the system now, also between blocks in use; takes milliseconds."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _set(name: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").mallopt(name, value)
