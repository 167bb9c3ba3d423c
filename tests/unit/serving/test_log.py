"""Every line of the log is JSON, whoever writes it, and quotes no text."""

import json
import subprocess
import sys

SCRIPT = """
import logging, threading, warnings
from weft.serving.log import write_all_as_json
write_all_as_json()
logging.getLogger("uvicorn.error").warning("Invalid HTTP request %s.", "received")
try:
    raise ValueError("a heron called Ferdinand")
except ValueError as error:
    logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=error)
logging.getLogger("asyncio").error("Exception in callback(Ferdinand)")
warnings.warn("Ferdinand")
def fail():
    raise KeyError("Ferdinand")
thread = threading.Thread(target=fail, name="engine")
thread.start()
thread.join()
"""


def test_lines_of_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    first, second, third, fourth, fifth = [json.loads(line) for line in done.stderr.splitlines()]
    assert first["message"] == "Invalid HTTP request received."
    assert (first["event"], first["logger"], first["level"]) == ("message", "uvicorn.error", "warning")
    assert (second["message"], second["error"], second["where"]) == (
        "Exception in ASGI application",
        "ValueError",
        ["<string>:7"],
    )
    assert (third["logger"], third["level"]) == ("asyncio", "error")
    assert (fourth["event"], fourth["warning"]) == ("warning", "UserWarning")
    assert (fifth["event"], fifth["thread"], fifth["error"]) == ("failure", "engine", "KeyError")
    assert "Ferdinand" not in done.stderr
