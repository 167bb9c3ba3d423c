"""A real server answers as the model does, whoever else asks."""

import base64
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from tests.exported import SECONDS, TEXTS, write_model
from tests.integration.command import weft as run_weft
from tests.serving import TASKS, Server
from tests.texts import MIXED_SENTENCES
from tests.tiny import write_rows


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("model"), TASKS)


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(model, tmp_path_factory.mktemp("server") / "log", "--max-wait-ms", 20) as server:
        yield server
        assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


@pytest.fixture(scope="module")
def loaded(model: Path) -> weft.Model:
    return weft.load(model, "cpu")


def test_answers_are_those_of_the_model(server: Server, loaded: weft.Model) -> None:
    for task in TASKS:
        seconds = None if task == "sentiment" else SECONDS
        expected = [prediction.as_dict() for prediction in loaded.predict(task, TEXTS, seconds)]
        found = server.post(f"/v1/predict/{task}", {"text": TEXTS, "text2": seconds})
        for one, other in zip(found["answers"], expected, strict=True):
            assert close(one, other)
    assert found["model"] == "tiny"
    assert found["usage"]["total_tokens"] > 100


def close(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Equal labels, and numbers to 1e-5."""
    assert one.keys() == other.keys()
    assert one["task"] == other["task"]
    assert one.get("label") == other.get("label")
    assert one["score"] == pytest.approx(other["score"], abs=1e-5)
    assert (one.get("probabilities") or {}) == pytest.approx(other.get("probabilities") or {}, abs=1e-5)
    return True


def test_many_clients_get_what_each_would_get_alone(server: Server) -> None:
    bodies = [{"text": a, "text2": b} for a, b in zip(MIXED_SENTENCES, MIXED_SENTENCES[::-1], strict=True)]
    alone = [server.post("/v1/predict", body) for body in bodies]
    before = metric(server, "weft_batch_requests_count")
    with ThreadPoolExecutor(16) as pool:
        joined = list(pool.map(lambda body: server.post("/v1/predict", body), bodies))
    for one, other in zip(joined, alone, strict=True):
        assert list(one["answers"]) == list(TASKS)
        for task in TASKS:
            assert close(one["answers"][task][0], other["answers"][task][0])
    assert metric(server, "weft_batch_requests_count") - before < len(bodies)  # they did join


def metric(server: Server, name: str) -> float:
    status, page, _ = server.request("GET", "/metrics")
    assert status == 200
    return float(next(line.split()[1] for line in page.splitlines() if line.startswith(f"{name} ")))


def test_tasks_choose_what_they_read(server: Server, loaded: weft.Model) -> None:
    assert list(server.post("/v1/predict", {"text": "a cat"})["answers"]) == ["sentiment"]
    both = {"text": "a cat", "text2": "the dog", "tasks": ["similarity", "sentiment", "similarity"]}
    found = server.post("/v1/predict", both)
    assert list(found["answers"]) == ["similarity", "sentiment"]
    # [CLS] a cat [SEP] for both tasks, [CLS] the dog [SEP] for one
    assert found["usage"]["total_tokens"] == 8
    assert close(found["answers"]["sentiment"][0], loaded.predict("sentiment", ["a cat"])[0].as_dict())


def test_lists_of_tasks_and_models(server: Server) -> None:
    _, tasks, _ = server.request("GET", "/v1/tasks")
    assert [task["name"] for task in tasks["data"]] == list(TASKS)
    assert [task["texts"] for task in tasks["data"]] == [1, 2, 2, 2]
    assert tasks["data"][0]["labels"] == ["bad", "good"]
    assert tasks["data"][2]["range"] == [0, 5]
    assert server.request("GET", "/healthz")[0] == server.request("GET", "/readyz")[0] == 200


def test_openai_gets_the_embeddings_of_weft_embed(
    server: Server, model: Path, loaded: weft.Model, tmp_path: Path
) -> None:
    openai = pytest.importorskip("openai")
    texts = [text for text in TEXTS if text]
    table = write_rows(tmp_path / "texts.csv", [{"text": text} for text in texts], ",")
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    assert [one.id for one in client.models.list()] == ["tiny", *(f"tiny/{task}" for task in TASKS)]
    assert client.models.retrieve("tiny/sentiment").id == "tiny/sentiment"
    run_weft("embed", model, "--input", table, "--output", tmp_path / "vectors.npy")
    vectors = {"tiny": np.load(tmp_path / "vectors.npy"), "tiny/sentiment": loaded.embed(texts, "sentiment")}
    for name, expected in vectors.items():
        for encoding in (openai.omit, "float", "base64"):  # the client asks for base64 itself unless told
            found = client.embeddings.create(model=name, input=texts, encoding_format=encoding)
            numbers = [
                np.frombuffer(base64.b64decode(one.embedding), "<f4") if encoding == "base64" else one.embedding
                for one in found.data
            ]
            np.testing.assert_allclose(np.array(numbers, np.float32), expected, atol=1e-5)
            assert [one.index for one in found.data] == list(range(len(texts)))
            assert found.usage.prompt_tokens == found.usage.total_tokens > 0
    with pytest.raises(openai.NotFoundError, match="unknown model 'text-embedding-3-small'; expected one of tiny"):
        client.embeddings.create(model="text-embedding-3-small", input="a")
    with pytest.raises(openai.BadRequestError, match="found 7, expected 16"):
        client.embeddings.create(model="tiny", input="a", dimensions=7)
    with pytest.raises(openai.BadRequestError, match="entry 0: expected a text, found a number"):
        client.embeddings.create(model="tiny", input=[1, 2, 3])


def test_floats_when_no_encoding_is_named(server: Server) -> None:
    found = server.post("/v1/embeddings", {"model": "tiny", "input": "a cat"})
    assert len(found["data"][0]["embedding"]) == 16
    assert isinstance(found["data"][0]["embedding"][0], float)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "sentiment"])
def test_documents_are_ranked(server: Server, loaded: weft.Model, task: str) -> None:
    query, documents = "a cat sees", ["the dog", "a cat", "a warm film", "the dog"]
    predictions = loaded.predict(task, [query] * 4, documents)
    scores = [one.probabilities["1"] if one.probabilities else one.score for one in predictions]
    body = {
        "model": f"tiny/{task}",
        "query": query,
        "documents": [documents[0], {"text": documents[1]}, *documents[2:]],
    }
    found = server.post("/v1/rerank", body)
    assert found["model"] == f"tiny/{task}"
    assert found["id"]
    order = sorted(range(4), key=lambda i: -scores[i])  # stable: of equal documents, the first
    assert [one["index"] for one in found["results"]] == order
    assert [one["relevance_score"] for one in found["results"]] == pytest.approx([scores[i] for i in order], abs=1e-5)
    assert all("document" not in one for one in found["results"])
    shown = server.post("/v1/rerank", body | {"top_n": 2, "return_documents": True})["results"]
    assert [one["document"]["text"] for one in shown] == [documents[i] for i in order[:2]]
    assert found["usage"]["total_tokens"] > 0


def test_the_models_name_ranks_with_its_first_task_on_pairs(server: Server) -> None:
    body = {"query": "a cat", "documents": ["a dog", "the cat"]}
    one, other = (server.post("/v1/rerank", body | {"model": name}) for name in ("tiny", "tiny/paraphrase"))
    assert one["results"] == other["results"]


GOOD = {"text": "a cat"}
RANK = {"model": "tiny", "query": "a", "documents": ["b"]}
BAD: list[tuple[str, str, Any, int, str]] = [
    ("not json", "/v1/predict", b"{", 400, "the body is not JSON"),
    ("nothing", "/v1/predict", b"", 400, "the body is not JSON"),
    ("not utf-8", "/v1/predict", b'{"text": "\xff"}', 400, "the body is not JSON"),
    ("deep", "/v1/predict", b"[" * 1_000, 400, "the body is not JSON"),
    ("a surrogate", "/v1/predict", b'{"text": "\\ud800"}', 400, "surrogate"),
    ("NUL", "/v1/predict", {"text": ["fine", "a\0b"]}, 400, "text: entry 1: contains a NUL"),
    ("a list", "/v1/predict", [], 400, "the body: Input should be an object"),
    ("a number", "/v1/predict", {"text": 3}, 400, "text: expected a text or a list of texts, found a number"),
    ("null", "/v1/predict/sentiment", {"text": None}, 400, "text: expected a text or a list of texts, found null"),
    ("a text in a list", "/v1/predict", {"text": ["a", None]}, 400, "text: entry 1: expected a text, found null"),
    ("an empty list", "/v1/predict", {"text": []}, 400, "text: expected at least one text"),
    ("no text", "/v1/predict", {}, 400, "text: Field required"),
    ("a key too many", "/v1/predict", GOOD | {"texts": 1}, 400, "texts: unknown key; expected one of text, text2"),
    ("an unknown task", "/v1/predict/moods", GOOD, 404, "unknown task 'moods'; expected one of sentiment, paraphrase"),
    ("unknown tasks", "/v1/predict", GOOD | {"tasks": ["moods"]}, 404, "unknown task 'moods'"),
    ("no tasks", "/v1/predict", GOOD | {"tasks": []}, 400, "tasks: "),
    ("one of two", "/v1/predict/similarity", GOOD, 400, "task 'similarity' reads two texts for each row"),
    ("two of one", "/v1/predict/sentiment", GOOD | {"text2": "b"}, 400, "task 'sentiment' reads one text for each row"),
    (
        "nobody reads",
        "/v1/predict",
        GOOD | {"text2": "b", "tasks": ["sentiment"]},
        400,
        "text2: no chosen task reads it",
    ),
    ("unequal", "/v1/predict/similarity", GOOD | {"text2": ["a", "b"]}, 400, "1 first texts, but 2 second ones"),
    ("many texts", "/v1/predict", {"text": ["a"] * 257}, 400, "found 257 texts, at most 256 are allowed"),
    ("a long text", "/v1/predict", {"text": "a" * 20_001}, 400, "20,001 characters, at most 20,000 are allowed"),
    ("10 MB", "/v1/predict", {"text": "a" * 10_000_000}, 413, "bytes, at most 1,000,000 are allowed"),
    ("no input", "/v1/embeddings", {"model": "tiny"}, 400, "input: Field required"),
    (
        "an encoding",
        "/v1/embeddings",
        {"model": "tiny", "input": "a", "encoding_format": "hex"},
        400,
        "encoding_format",
    ),
    ("one text", "/v1/rerank", RANK | {"model": "tiny/sentiment"}, 404, "models that rank documents: tiny, tiny/para"),
    ("no documents", "/v1/rerank", RANK | {"documents": []}, 400, "documents: expected at least one text"),
    ("a document", "/v1/rerank", RANK | {"documents": "b"}, 400, "documents: expected a list of texts, found a text"),
    ("an object", "/v1/rerank", RANK | {"documents": [{"body": "b"}]}, 400, "documents: entry 0: expected a text"),
    ("no results", "/v1/rerank", RANK | {"top_n": 0}, 400, "top_n: "),
    ("a query with NUL", "/v1/rerank", RANK | {"query": "a\0"}, 400, "query: entry 0: contains a NUL"),
    ("a long query", "/v1/rerank", RANK | {"query": "a" * 20_001}, 400, "query: entry 0 has 20,001 characters"),
    ("many documents", "/v1/rerank", RANK | {"documents": ["a"] * 257}, 400, "documents: found 257 texts"),
    ("an odd path", "/v1/preach", GOOD, 404, "unknown path; /docs lists all paths"),
]


@pytest.mark.parametrize(("path", "body", "status", "message"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_what_is_wrong_is_said(server: Server, path: str, body: Any, status: int, message: str) -> None:
    found = server.refusal(path, body)
    assert found[0] == status, found
    assert message in found[1]


def test_other_refusals(server: Server) -> None:
    assert server.refusal("/v1/predict", GOOD, headers={"Content-Type": "text/plain"})[0] == 415
    status, _, headers = server.request("PUT", "/v1/predict", GOOD)
    assert (status, headers["allow"]) == (405, "POST")


def raw(server: Server, head: str, body: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    lines = f"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n"
    connection.sendall(lines.encode() + body)
    return connection


def test_chunks_are_counted_while_they_come(server: Server) -> None:
    chunk = b"%x\r\n%b\r\n" % (100_000, b" " * 100_000)
    with raw(server, "Transfer-Encoding: chunked\r\n", chunk * 20 + b"0\r\n\r\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_who_asks_before_sending_is_told_at_once(server: Server) -> None:
    with raw(server, "Content-Length: 10000000\r\nExpect: 100-continue\r\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_client_that_leaves_is_dropped_from_the_queue(server: Server) -> None:
    """Its rows never reach the engine: those who wait behind a long request leave before their turn."""
    body = json.dumps({"text": TEXTS * 23, "text2": SECONDS * 23}).encode()
    before = metric(server, "weft_clients_gone_total")
    tokens = metric(server, "weft_tokens_total")
    leaving = [raw(server, f"Content-Length: {len(body)}\r\n", body) for _ in range(8)]
    for connection in leaving:
        connection.close()
    deadline = time.monotonic() + 20
    while metric(server, "weft_clients_gone_total") < before + 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert metric(server, "weft_clients_gone_total") >= before + 4
    server.post("/v1/predict", GOOD)
    whole = server.post("/v1/predict", json.loads(body))["usage"]["total_tokens"]
    assert metric(server, "weft_tokens_total") - tokens < 8 * whole
    assert metric(server, "weft_queue_requests") == metric(server, "weft_queue_tokens") == 0


def test_the_log_has_every_request_and_no_text(server: Server) -> None:
    secret = "a heron called Ferdinand"
    bodies = {"/v1/predict": {"text": secret}, "/v1/predict?x": {secret: 1}, "/v1/predict/Ferdinand": {"text": secret}}
    ids = [server.request("POST", path, body)[2]["x-request-id"] for path, body in bodies.items()]
    while len(records := [r for r in server.records() if r["id"] in ids]) < 3:  # written when the client has it
        time.sleep(0.01)
    assert [record["status"] for record in records] == [200, 400, 404]
    assert records[0]["tokens"] == 5 + len("called") + len("ferdinand") - 1  # unknown words are spelt
    assert all(record["ms"] > 0 and record["id"] and record["path"].startswith("/v1/") for record in records)
    assert "erdinand" not in server.log.read_text()


def test_pages_allow_nothing_from_elsewhere(server: Server) -> None:
    for path in ("/", "/docs", "/page/page.js", "/page/style.css"):
        status, content, headers = server.request("GET", path)
        assert status == 200
        assert (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
            in headers["content-security-policy"]
        )
        assert "http://" not in content.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in content


@pytest.mark.parametrize("examples", [8, pytest.param(150, marks=pytest.mark.long)])
def test_the_description_holds(server: Server, examples: int) -> None:
    """Whatever a machine makes of the description: no 5xx, and no answer that it does not allow."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    seen = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        modes = [schemathesis.GenerationMode.POSITIVE]
        if operation.method == "post":  # there is nothing to get wrong in the others
            modes.append(schemathesis.GenerationMode.NEGATIVE)
        for mode in modes:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=examples,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                database=None,
                derandomize=True,
            )
            def holds(case: Any) -> None:
                nonlocal seen
                seen += 1
                # that two lists are equally long is more than a schema can say
                case.call_and_validate(excluded_checks=[positive_data_acceptance])

            holds()
    assert seen > 6 * examples / 2
