"""Ray: the cluster that RAY_ADDRESS names, or one on this machine for as long as it is needed."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from weft.foundation.errors import UserError


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
    before = signal.getsignal(signal.SIGTERM)
    ray.init(log_to_driver=False, configure_logging=False, **own)
    with suppress(ValueError):  # not in the main thread: there Ray leaves signals alone
        signal.signal(signal.SIGTERM, before)  # Ray's own handler ends the process without a word
    try:
        yield ray
    finally:
        ray.shutdown()


def last_line(error: Exception) -> str:
    """Of a report on what happened in a worker the line that says it."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
