"""A server that strangers can reach: floods, foreign hosts and origins, ambiguous requests, missing keys."""

import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.exported import write_model
from tests.integration.command import weft
from tests.serving import TASKS, Server

LARGE = json.dumps({"text": [("the ferry left before noon " * 800)[:19_900]] * 45}).encode()
"""0.9 MB within all limits"""
FLOOD = 40
KEY = "open-sesame"


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("model"), TASKS)


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    keys = folder / "keys"
    keys.write_text(f"{KEY}\n", encoding="utf-8")
    with Server(model, folder / "log", "--api-key-file", keys, "--allowed-host", "weft.example") as server:
        yield server
        assert server.stop() == 0
        assert {record["status"] for record in server.records()} <= {200, 400, 401, 403, 404, 421, 429, 499}


def connect(server: Server, body: bytes, *headers: str, version: str = "1.1", host: str = "localhost") -> socket.socket:
    """A request is sent; nothing is read yet."""
    length = [] if any(header.startswith("Content-Length") for header in headers) else [f"Content-Length: {len(body)}"]
    lines = [f"POST /v1/predict HTTP/{version}", f"Host: {host}", f"Authorization: Bearer {KEY}"]
    lines += ["Content-Type: application/json", "Connection: close", *length, *headers, "", ""]
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    connection.sendall("\r\n".join(lines).encode() + body)
    return connection


def answer(connection: socket.socket) -> tuple[int, str]:
    """Status, and all that came until the server closed."""
    with connection:
        found = b"".join(iter(lambda: connection.recv(100_000), b"")).decode()
    return int(found.split()[1]), found


def metric(server: Server, name: str) -> float:
    _, page, _ = server.request("GET", "/metrics", headers={"Authorization": f"Bearer {KEY}"})
    return float(next(line.split()[1] for line in page.splitlines() if line.startswith(f"{name} ")))


def test_a_flood_is_rejected_before_it_is_tokenized(server: Server) -> None:
    """Clients that wait for their answers: a few are let in, the others are told to retry; small requests pass."""
    before = metric(server, "weft_tokenized_characters_total")
    with ThreadPoolExecutor(FLOOD) as pool:
        flood = [pool.submit(lambda: answer(connect(server, LARGE))) for _ in range(FLOOD)]
        small = [server.request("POST", "/v1/predict", {"text": "a cat"}, bearer()) for _ in range(20)]
        found = [one.result() for one in flood]
    statuses = Counter(status for status, _ in found)
    assert set(statuses) == {200, 429}
    assert [status for status, _, _ in small] == [200] * 20
    busy = [text for status, text in found if status == 429]
    assert any("4,000,000 characters are in use" in text for text in busy)
    assert all("retry-after: " in text.lower() for text in busy)
    tokenized = metric(server, "weft_tokenized_characters_total") - before
    assert tokenized < 45 * 19_900 * (statuses[200] + 10)  # ten for the token queue, which is behind the tokenizer


def bearer() -> dict[str, str]:
    return {"Authorization": f"Bearer {KEY}"}


def test_clients_that_leave_are_not_tokenized(server: Server) -> None:
    before = metric(server, "weft_tokenized_characters_total")
    for _ in range(FLOOD):
        connect(server, LARGE).close()
    deadline = time.monotonic() + 60
    while metric(server, "weft_queue_characters") or metric(server, "weft_queue_requests"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    tokenized = metric(server, "weft_tokenized_characters_total") - before
    assert tokenized < FLOOD / 2 * 45 * 19_900
    assert server.request("POST", "/v1/predict", {"text": "a cat"}, bearer())[0] == 200


@pytest.mark.parametrize(
    "body", [b'{"text": "a", "tasks": [' + b"1," * 490_000 + b"1]}", b'{"text": [' + b"[]," * 330_000 + b"1]}"]
)
def test_many_values_in_few_bytes(server: Server, body: bytes) -> None:
    status, content, _ = server.request("POST", "/v1/predict", body, bearer())
    assert status == 400
    assert "the body has too many values" in content["error"]["message"]


def test_other_hosts_and_origins(server: Server) -> None:
    body = b'{"text": "a cat"}'
    at = f"localhost:{server.port}"
    assert answer(connect(server, body, host=at))[0] == 200
    assert answer(connect(server, body, host="weft.example"))[0] == 200
    assert answer(connect(server, body, f"Origin: http://{at}", host=at))[0] == 200
    status, text = answer(connect(server, body, host=f"elsewhere.example:{server.port}"))
    assert (status, "--allowed-host" in text) == (421, True)
    for origin in ("http://elsewhere.example", "null", f"http://elsewhere.example:{server.port}"):
        assert answer(connect(server, body, f"Origin: {origin}", host=at))[0] == 403
    for path in ("/", "/healthz", "/openapi.json"):  # whatever is asked, and before any key
        assert server.request("GET", path, headers={"Host": "elsewhere.example"})[0] == 421


def test_an_ambiguous_length_is_rejected_and_ends_the_connection(server: Server) -> None:
    chunk = b'10\r\n{"text": "a cat"\r\n1\r\n}\r\n0\r\n\r\n'
    hidden = chunk + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for version, headers in (("1.1", ["Transfer-Encoding: chunked"]), ("1.0", ["Transfer-Encoding: chunked"])):
        status, found = answer(connect(server, hidden, *headers, version=version))
        assert status == 400
        assert found.count("HTTP/1.1") == 1  # what follows is not taken for a request
        assert "ambiguous" in found


@pytest.mark.parametrize(
    "path", ["/openapi.json", "/v1/tasks", "/v1/models", "/metrics", "/v1", "/elsewhere", "//v1/tasks"]
)
def test_nothing_of_the_model_without_a_key(server: Server, path: str) -> None:
    status, content, headers = server.request("GET", path)
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert "API key" in content["error"]["message"]


def test_with_a_key(server: Server) -> None:
    status, content, _ = server.request("GET", "/openapi.json", headers=bearer())
    assert status == 200
    assert "/v1/predict" in content["paths"]
    for path in ("/", "/docs", "/healthz", "/readyz", "/page/style.css"):
        status, content, _ = server.request("GET", path)
        assert status == 200
        assert "tiny" not in str(content)  # the model's name


def test_lines_of_the_http_library_are_json_too(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"\x16\x03\x01 not HTTP\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")
    messages = [record["message"] for record in server.records("message")]
    assert "Invalid HTTP request received." in messages


def test_a_name_that_is_none(model: Path) -> None:
    done = weft("serve", model, "--port", 0, "--allowed-host", "http://weft.example", code=2)
    assert "--allowed-host: found 'http://weft.example', expected a host name or an address" in done.stderr
