"""Several workers behind one port: they share weights, a dead one is replaced, and all stop together."""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.exported import write_model
from tests.integration.command import weft
from tests.serving import TASKS, Server

PATIENCE = 60.0


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("model"), TASKS)


def until(found: Callable[[], Any]) -> Any:
    """What a function returns once it is true."""
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value


def pids(server: Server) -> list[int]:
    """The workers that run, in the order of their start."""
    ended = {record["pid"] for record in server.records("worker_ended")}
    return [record["pid"] for record in server.records("worker_started") if record["pid"] not in ended]


def ask(server: Server) -> int:
    """Status of a request over a new connection; 0 if it was lost."""
    try:
        return server.request("POST", "/v1/predict/sentiment", {"text": "a cat"})[0]
    except OSError:
        return 0


def total(server: Server, name: str) -> float:
    """Value of a metric."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", server.request("GET", "/metrics")[1], re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_life_of_several_workers(model: Path, tmp_path: Path) -> None:
    """One server for all: it takes seconds to start."""
    with Server(model, tmp_path / "log", "--workers", 2) as server:
        first, second = pids(server)
        assert _shared(first, second, model / "model.safetensors")
        done = weft("serve", model, "--workers", 2, "--port", server.port, code=2)
        assert f"cannot listen on 127.0.0.1:{server.port}" in done.stderr

        answers = dict.fromkeys((first, second), 0.0)
        until(lambda: _both_answered(server, answers))
        counted = 'weft_requests_total{method="POST",route="/v1/predict/{task}",status="200"}'
        assert total(server, counted) == len([r for r in server.records() if r["path"] == "/v1/predict/{task}"])
        assert total(server, "weft_workers") == 2

        os.kill(first, signal.SIGKILL)
        until(lambda: [r["code"] for r in server.records("worker_ended")] == [-signal.SIGKILL])
        assert [ask(server) for _ in range(10)] == [200] * 10  # by the other one
        until(lambda: total(server, "weft_workers") == 2)
        assert len(pids(server)) == 2

        assert server.stop() == 0
        assert len(server.records("stopped")) == 2
        assert [r["code"] for r in server.records("worker_ended")] == [-signal.SIGKILL, 0, 0]
    assert "Traceback" not in server.log.read_text()


def _both_answered(server: Server, cpu: dict[int, float]) -> bool:
    """Whether the CPU time of both workers grows with the requests: the system divides the connections."""
    if not any(cpu.values()):
        cpu |= {pid: _cpu(pid) for pid in cpu}
    assert [ask(server) for _ in range(8)] == [200] * 8
    return all(_cpu(pid) > before for pid, before in cpu.items())


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _shared(first: int, second: int, file: Path) -> bool:
    """Whether both processes map the file, and its resident pages count half for each."""
    for pid in (first, second):
        text = Path(f"/proc/{pid}/smaps").read_text()
        blocks = [block for block in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", text) if str(file) in block]
        sizes = {
            key: sum(int(n) for block in blocks for n in re.findall(rf"^{key}: +(\d+)", block, re.M))
            for key in ("Rss", "Pss", "Private_Dirty")
        }
        assert sizes["Rss"] > 0, "the weights are not mapped"
        assert sizes["Private_Dirty"] == 0, "the weights were copied"
        assert sizes["Pss"] <= 0.6 * sizes["Rss"], sizes
    return True


def test_workers_end_with_their_supervisor(model: Path, tmp_path: Path) -> None:
    with Server(model, tmp_path / "log", "--workers", 2) as server:
        running = pids(server)
        server.process.kill()
        server.process.wait()
        until(lambda: not any(_runs(pid) for pid in running))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_interrupt(model: Path, tmp_path: Path) -> None:
    with Server(model, tmp_path / "log", "--workers", 2) as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 130
        assert len(server.records("stopped")) == 2


def test_a_model_that_cannot_be_loaded_is_reported_once(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    copy.mkdir()
    for file in model.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "heads.safetensors").write_bytes(b"broken")
    done = weft("serve", copy, "--port", 0, "--workers", 2, code=2)
    said = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(said) == 1
    assert "heads.safetensors: is damaged" in said[0]
