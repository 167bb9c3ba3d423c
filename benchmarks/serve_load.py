"""What joining the requests of many clients gains: the same server with batching and without, under the same load.

    python benchmarks/serve_load.py [--model RUN] [--clients N] [--seconds S] [--rounds N] [--onnx]

Two servers run on the loopback address. The clients, in a process of their own, ask one and then the other for so many
seconds in all, in rounds that alternate. Each client sends its next request when it has its answer; the tasks take
turns, and no two requests in flight have the same text. The last line is JSON: requests per second of one side over
the other's, errors, and by how many megabytes the server that grew most has grown.
"""

import argparse
import asyncio
import csv
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sides import Ratio, alternate, show

import weft
from weft.data.config import PRESETS
from weft.export import export

SIDES = {"batching": [], "single": ["--batch-tokens", "0"]}
WARM = 5.0
"""seconds of load before anything is measured: allocators grow until they have met the largest batches"""


@dataclass
class Tally:
    """What clients saw of one server."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def errors(self) -> int:
        return self.statuses.total() - self.statuses["200"]


class Client(asyncio.Protocol):
    """One connection that is kept: a request, its answer, the next request. As little Python as possible."""

    LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

    def __init__(self, requests: "itertools.cycle[bytes]", tally: Tally, ended: Callable[[], bool]) -> None:
        self.requests = requests
        self.tally = tally
        self.ended = ended
        self.done = asyncio.get_running_loop().create_future()
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        self.buffer = b""
        self.start = time.perf_counter()
        self.transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, blank, body = self.buffer.partition(b"\r\n\r\n")
        length = self.LENGTH.search(head)
        if not blank or length is None or len(body) < int(length[1]):
            return
        self.tally.seconds.append(time.perf_counter() - self.start)
        self.tally.statuses[head.split(b" ", 2)[1].decode()] += 1
        if self.ended():
            self.done.set_result(None)
            self.transport.close()
        else:
            self._ask()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        if not self.done.done():  # in the middle of a request
            self.tally.statuses["lost"] += 1
            self.done.set_result(None)


class Served:
    """A server in a process of its own."""

    def __init__(self, model: Path, options: list[str], log: Path) -> None:
        command = [sys.executable, "-m", "weft", "serve", str(model), "--port", "0", *options]
        with log.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self.process.stdout is not None
        said = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        if said is None:
            sys.exit(log.read_text())
        self.port = int(said[1])

    def memory(self) -> float:
        """Resident, in megabytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def load(self, requests: "itertools.cycle[bytes]", clients: int, seconds: float) -> Tally:
        end = time.perf_counter() + seconds
        return asyncio.run(self.ask(requests, clients, lambda: time.perf_counter() >= end))

    async def ask(self, requests: "itertools.cycle[bytes]", clients: int, ended: Callable[[], bool]) -> Tally:
        """Clients that ask on and on until it has ended."""
        tally, loop = Tally(), asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: Client(requests, tally, ended), "127.0.0.1", self.port)
            for _ in range(clients)
        ]
        await asyncio.gather(*(client.done for _, client in made))
        return tally

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def make_requests(model: weft.Model) -> "itertools.cycle[bytes]":
    """A request for each starter text, the model's tasks in turn, in an order that looks like chance."""
    rows: dict[str, list[list[str]]] = {}
    for name, config in PRESETS.items():
        if name.startswith("starter/"):
            for file in (config.train, config.dev):
                with Path(str(file)).open(encoding="utf-8", newline="") as handle:
                    for row in csv.DictReader(handle, delimiter="\t"):
                        texts = [row[config.text]] + ([row[config.text2]] if config.text2 else [])
                        rows.setdefault(str(len(texts)), []).append(texts)
    draw = random.Random(1)
    for own in rows.values():
        draw.shuffle(own)
    tasks = itertools.cycle(model.config.tasks.items())
    sources = {count: itertools.cycle(own) for count, own in rows.items()}
    requests = []
    for task, config in itertools.islice(tasks, sum(map(len, rows.values()))):
        texts = next(sources["1" if config.reading == "single" else "2"])
        body = json.dumps(dict(zip(("text", "text2"), texts, strict=False))).encode()
        head = f"POST /v1/predict/{task} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        requests.append(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return itertools.cycle(requests)


def percentiles(seconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {f"p{p}_ms": round(1000 * cuts[p - 1], 1) for p in (50, 95, 99)}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a run folder; one step of the starter recipe unless given")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60, help="of load on each side")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--onnx", action="store_true", help="serve the model's ONNX export")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    with tempfile.TemporaryDirectory() as place:
        run = asked.model
        if run is None:  # the speed does not depend on what the weights have learnt
            run = Path(place) / "run"
            weft.train("starter", run, steps=1)
        requests = make_requests(weft.load(run, "cpu"))
        if asked.onnx:
            export(run, "onnx", Path(place) / "onnx")
            run = Path(place) / "onnx"
        servers = {name: Served(run, options, Path(place) / f"{name}.log") for name, options in SIDES.items()}
        try:
            measure(servers, requests, asked)
        finally:
            codes = [server.stop() for server in servers.values()]
    sys.exit(any(codes))


def measure(servers: dict[str, Served], requests: "itertools.cycle[bytes]", asked: argparse.Namespace) -> None:
    tallies = {name: Tally() for name in servers}
    for server in servers.values():
        server.load(requests, asked.clients, WARM)
    before = {name: server.memory() for name, server in servers.items()}

    def rate(name: str) -> float:
        """Requests per second of one round."""
        start = time.perf_counter()
        tally = servers[name].load(requests, asked.clients, asked.seconds / asked.rounds)
        tallies[name].seconds += tally.seconds
        tallies[name].statuses += tally.statuses
        return len(tally.seconds) / (time.perf_counter() - start)

    measured = alternate({name: lambda name=name: rate(name) for name in servers}, asked.rounds)
    after = {name: server.memory() for name, server in servers.items()}
    report = {
        name: {
            "requests_per_second": round(statistics.median(measured[name]), 1),
            **percentiles(tally.seconds),
            "requests": len(tally.seconds),
            "errors": tally.errors,
            "rss_mb": [round(before[name]), round(after[name])],
        }
        for name, tally in tallies.items()
    }
    for name, numbers in report.items():
        print(name, "  ".join(f"{key} {value}" for key, value in numbers.items()))
    ratio = {"batching_vs_single": Ratio.of(measured["batching"], measured["single"])}
    further = {
        "errors": sum(tally.errors for tally in tallies.values()),
        "rss_growth_mb": round(max(after[name] - before[name] for name in servers), 1),
        "clients": asked.clients,
        "seconds": asked.seconds,
        "sides": report,
    }
    show(ratio, {"batching_vs_single": "requests of many clients in one pass against one by one"}, further)


if __name__ == "__main__":
    main()
