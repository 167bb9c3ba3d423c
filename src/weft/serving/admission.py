"""Admission control: decided before any work is done, by the current load; clients are not identified."""

from collections.abc import Iterator
from contextlib import contextmanager

from weft.serving.refusals import Refusal


def fits(size: int, used: int, limit: int) -> bool:
    """Whether a request may take `size` of a shared limit: at most half of the free capacity.

    So any number of large requests always leaves capacity for smaller ones. If nothing is in use, any size fits.
    """
    return not used or 2 * size <= limit - used


def full(size: int, used: int, limit: int, unit: str, seconds: int = 1) -> Refusal:
    """Build the 429 response of a busy server; the client should retry."""
    message = (
        f"the server is busy: {used:,} of {limit:,} {unit} are in use, and a request may take half of the rest; "
        f"this request has {size:,}; retry in {seconds} s"
    )
    return Refusal(429, message, "queue_full", headers={"Retry-After": str(seconds)})


class Room:
    """A limit that all requests share."""

    def __init__(self, limit: int, unit: str) -> None:
        self.limit = limit
        self.unit = unit
        self.used = 0

    def fits(self, size: int) -> bool:
        return fits(size, self.used, self.limit)

    def full(self, size: int) -> Refusal:
        return full(size, self.used, self.limit, self.unit)

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        """Reserve a part of the limit until the block ends; raises a 429 if it does not fit."""
        if not self.fits(size):
            raise self.full(size)
        self.used += size
        try:
            yield
        finally:
            self.used -= size
