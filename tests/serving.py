"""A real server in a process of its own, and a plain way to talk to it."""

import http.client
import json
import os
import re
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.integration.command import WEFT

TASKS: dict[str, dict[str, Any]] = {
    "sentiment": {"like": "sentiment", "pooling": "mean"},
    "paraphrase": {"like": "paraphrase"},
    "similarity": {"like": "similarity", "range": [0, 5], "head": "cosine"},
    "match": {"like": "matches"},
}


class Server:
    """`weft serve` at a free port. Its log is a file, because nobody reads a pipe."""

    def __init__(self, model: Path, log: Path, *options: Any) -> None:
        self.log = log
        command = [*WEFT, "serve", str(model), "--port", "0", *map(str, options)]
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, env=dict(os.environ)
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        said = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert said, f"{line}\n{log.read_text()}"
        self.port = int(said[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.request("GET", "/readyz")  # connections wait until it listens

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON and headers; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, data, {"Content-Type": "application/json"} | (headers or {}))
            response = connection.getresponse()
            content = response.read()
            kind = response.headers.get_content_type()
            found = json.loads(content) if kind == "application/json" else content.decode()
            return response.status, found, {key.lower(): value for key, value in response.headers.items()}

    def post(self, path: str, body: Any, **options: Any) -> Any:
        status, content, _ = self.request("POST", path, body, **options)
        assert status == 200, content
        return content

    def refusal(self, path: str, body: Any, **options: Any) -> tuple[int, str]:
        """Status and message of a request that is refused."""
        status, content, _ = self.request("POST", path, body, **options)
        assert set(content) == {"error"}, content
        assert set(content["error"]) == {"message", "type", "param", "code"}
        return status, content["error"]["message"]

    def records(self, event: str = "request") -> list[dict[str, Any]]:
        """What the log says."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        """No test leaves a server behind."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
