"""Ray: connects to the cluster that RAY_ADDRESS names, or starts a temporary local one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from weft.foundation.errors import UserError


def import_ray() -> Any:
    """Import Ray, or raise a `UserError` with the install command."""
    try:
        import ray
    except ImportError:
        raise UserError('--executor ray: needs Ray; run: pip install "weft[cluster]"') from None
    return ray


@contextmanager
def connected(cpus: int | None = None) -> Iterator[Any]:
    """Yield an initialized Ray. A local one started here uses `cpus`; an already initialized one stays running."""
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # weft sends no telemetry
    own = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": cpus, "include_dashboard": False}
    before = signal.getsignal(signal.SIGTERM)
    ray.init(log_to_driver=False, configure_logging=False, **own)
    with suppress(ValueError):  # raised outside the main thread, where Ray installs no handlers
        signal.signal(signal.SIGTERM, before)  # Ray's handler exits silently
    try:
        yield ray
    finally:
        ray.shutdown()


def last_line(error: Exception) -> str:
    """Return the last non-empty line of a worker's error, which names the cause."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
