"""Ray: the cluster that RAY_ADDRESS names, or one on this machine for as long as it is needed."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft.errors import UserError


def import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise UserError('--executor ray: needs Ray; run: pip install "weft[cluster]"') from None
    return ray


@contextmanager
def connected(cpus: int | None = None) -> Iterator[Any]:
    """Ray, ready for work; `cpus` is what one that is started here may use. One that was there before stays."""
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # weft tells nobody what it does
    own = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": cpus, "include_dashboard": False}
    with _signals_as_they_are():
        ray.init(log_to_driver=False, configure_logging=False, **own)
    try:
        yield ray
    finally:
        ray.shutdown()


def last_line(error: Exception) -> str:
    """Of a report on what happened in a worker the line that says it."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__


@contextmanager
def _signals_as_they_are() -> Iterator[None]:
    """Ray puts a handler of its own on SIGTERM, which would end the process without a word."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)
