"""Too many, too slow, and the end: what is accepted is answered."""

import http.client
import json
import signal
import socket
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.exported import write_model
from tests.integration.command import weft
from tests.serving import TASKS, Server
from tests.texts import MIXED_SENTENCES

CLIENTS = 16


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("model"), TASKS)


class Load:
    """Clients that ask on and on: half of them on connections that are kept, half on a new one each time."""

    def __init__(self, server: Server) -> None:
        self.port = server.port
        self.answers: Counter[int] = Counter()
        self.lost: list[str] = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._client, args=(i,)) for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def _client(self, number: int) -> None:
        connection: http.client.HTTPConnection | None = None
        for turn in range(100_000):
            if connection is None or connection.sock is None:  # new, or closed after a last answer
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                try:
                    connection.connect()
                except ConnectionError:
                    return  # not accepted: the server has closed its door
            text = MIXED_SENTENCES[(7 * number + turn) % 64]
            try:
                connection.request("POST", "/v1/predict", json.dumps({"text": text, "text2": text}), JSON)
                status = connection.getresponse()
                status.read()
            except (OSError, http.client.HTTPException) as error:
                with self.lock:
                    self.lost.append(repr(error))
                connection.close()
                return
            with self.lock:
                self.answers[status.status] += 1
            if number % 2:
                connection.close()

    def wait_for(self, answers: int) -> None:
        deadline = time.monotonic() + 60
        while self.answers.total() < answers:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


JSON = {"Content-Type": "application/json"}


def end_under_load(server: Server, answers: int) -> Counter[int]:
    load = Load(server)
    load.wait_for(answers)
    assert server.stop() == 0
    load.join()
    assert load.lost == []
    assert [record["event"] for record in server.records("draining") + server.records("stopped")] == [
        "draining",
        "stopped",
    ]
    return load.answers


HALF = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    with connection:
        return b"".join(iter(lambda: connection.recv(10_000), b""))


def test_too_slow_too_many_and_the_end(model: Path, tmp_path: Path) -> None:
    options = ("--body-seconds", 1, "--queue-tokens", 60, "--batch-tokens", 0)
    with Server(model, tmp_path / "log", *options) as server:
        slow = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(20)]
        for number, connection in enumerate(slow):
            connection.sendall(HALF if number < 10 else HALF[:12])  # a body, or headers, that never end
        server.post("/v1/predict", {"text": "a cat"})  # nobody waits for them
        for connection in slow[:10]:
            answer = rest(connection)
            assert answer.startswith(b"HTTP/1.1 408")
            assert b"did not arrive within 1 s" in answer
        assert [rest(connection) for connection in slow[10:]] == [b""] * 10
        answers = end_under_load(server, 200)
    assert set(answers) == {200, 429}


def test_retry_after(model: Path, tmp_path: Path) -> None:
    """And SIGINT, which ends like SIGTERM but says so, and readiness while requests are still finished."""
    found: list[tuple[int, Any, dict[str, str]]] = []
    body = {"text": MIXED_SENTENCES * 4, "text2": MIXED_SENTENCES * 4}
    with Server(model, tmp_path / "log", "--queue-tokens", 10) as server:
        ask = lambda: found.append(server.request("POST", "/v1/predict", body))  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(8)]
        watcher = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        for thread in threads:
            thread.start()
        while not found:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGINT)
        while not server.records("draining"):
            time.sleep(0.01)
        watcher.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")  # on a connection that was open before
        answer = rest(watcher)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"connection: close" in answer.lower()
        for thread in threads:
            thread.join(60)
        assert server.process.wait(60) == 130
    assert {status for status, _, _ in found} == {200, 429}
    for status, content, headers in found:
        if status == 429:
            assert int(headers["retry-after"]) >= 1
            assert "of 10 tokens are in use" in content["error"]["message"]
        else:
            assert len(content["answers"]["similarity"]) == 256


@pytest.mark.long
def test_twenty_ends_under_load(model: Path, tmp_path: Path) -> None:
    for number in range(20):
        with Server(model, tmp_path / f"log-{number}") as server:
            answers = end_under_load(server, 30 + 17 * number)
        assert set(answers) == {200}


def test_what_stands_in_the_way(model: Path, tmp_path: Path) -> None:
    empty = tmp_path / "keys"
    empty.write_text("# none\n", encoding="utf-8")
    assert "has no key; expected one per line" in weft("serve", model, "--api-key-file", empty, code=2).stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = weft("serve", model, "--port", port, code=2)
        assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
