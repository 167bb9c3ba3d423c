"""One JSON object a line on stderr. What clients send is never in it."""

import json
import sys
import time
import traceback
from typing import Any


def log(event: str, **fields: Any) -> None:
    record = {"time": round(time.time(), 3), "event": event, **fields}
    sys.stderr.write(json.dumps(record) + "\n")
    sys.stderr.flush()


def log_failure(error: BaseException, request: str) -> None:
    """Where something broke, without the message: that could quote a text."""
    frames = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    log("failure", request=request, error=type(error).__name__, where=frames)
