"""The server's log: one JSON object per line on stderr. It never contains what clients send."""

import json
import logging
import sys
import threading
import time
import traceback
import warnings
from typing import Any, TextIO


def log(event: str, **fields: Any) -> None:
    """Write one line."""
    record = {"time": round(time.time(), 3), "event": event, **fields}
    sys.stderr.write(json.dumps(record) + "\n")
    sys.stderr.flush()


def log_failure(error: BaseException, request: str) -> None:
    """Log the type and place of an exception, without its message, which could quote a text."""
    log("failure", request=request, **_failure(error))


def write_all_as_json() -> None:
    """Also log what libraries write as JSON: their log records, warnings, and exceptions in threads."""
    logging.getLogger().addHandler(_Lines())
    warnings.showwarning = _log_warning
    threading.excepthook = lambda found: log(
        "failure", thread=found.thread and found.thread.name, **_failure(found.exc_value)
    )


class _Lines(logging.Handler):
    """Writes log records as lines, without the messages of libraries other than uvicorn, which may quote a text."""

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
    """Replacement for `warnings.showwarning`."""
    log("warning", warning=category.__name__, where=[f"{filename}:{lineno}"])


def _failure(error: BaseException | None) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__) if error else []
    return {"error": type(error).__name__, "where": [f"{frame.filename}:{frame.lineno}" for frame in frames]}
