"""One JSON object a line on stderr. What clients send is never in it."""

import json
import logging
import sys
import threading
import time
import traceback
import warnings
from typing import Any, TextIO


def log(event: str, **fields: Any) -> None:
    record = {"time": round(time.time(), 3), "event": event, **fields}
    sys.stderr.write(json.dumps(record) + "\n")
    sys.stderr.flush()


def log_failure(error: BaseException, request: str) -> None:
    """Where something broke, without the message: that could quote a text."""
    log("failure", request=request, **_failure(error))


def write_all_as_json() -> None:
    """From now on, so is whatever libraries write: their log records, warnings, and exceptions of threads."""
    logging.getLogger().addHandler(_Lines())
    warnings.showwarning = _log_warning
    threading.excepthook = lambda found: log(
        "failure", thread=found.thread and found.thread.name, **_failure(found.exc_value)
    )


class _Lines(logging.Handler):
    """Records as lines. Of other libraries than uvicorn only where they come from: their words may quote a text."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name, "level": record.levelname.lower()}
        if record.name.startswith("uvicorn"):
            fields["message"] = record.getMessage().strip()
        if record.exc_info:
            fields |= _failure(record.exc_info[1])
        log("message", **{"where": [f"{record.pathname}:{record.lineno}"]} | fields)


def _log_warning(
    message: Warning | str,  # noqa: ARG001
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    """In the place of `warnings.showwarning`."""
    log("warning", warning=category.__name__, where=[f"{filename}:{lineno}"])


def _failure(error: BaseException | None) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__) if error else []
    return {"error": type(error).__name__, "where": [f"{frame.filename}:{frame.lineno}" for frame in frames]}
