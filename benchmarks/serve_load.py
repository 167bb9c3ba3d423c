"""A server under load: requests of many clients in joint passes against one by one, and latency at half load.

    python benchmarks/serve_load.py [--model RUN] [--clients N] [--seconds S] [--rounds N] [--sides A,B] [--workers N]

Servers run on the loopback address, one for each side. `single` gives every request its own pass (--batch-tokens 0);
`batching` has the defaults, `int8` adds --engine onnx-int8, `workers` adds --workers N. The clients, in a process of
their own, ask one server after the other, in rounds that alternate.

Throughput: each client sends its next request when it has its answer. The tasks take turns, and no two requests in
flight have the same text. Latency: one client alone, then requests at a constant rate of half of that round's
throughput, of all clients in turn, timed from when they were due; the ratio is the 99th percentile of these over the
median of the client alone. With `poisson` in its name, they arrive at random with the same mean rate: random arrivals
come in bursts, and even a server whose passes cost the same for any number of requests has a ratio above 3 there.

The last line is JSON: ratios, errors, and by how many megabytes the server that grew most has grown.
"""

import argparse
import asyncio
import csv
import gc
import itertools
import json
import os
import random
import re
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sides import Ratio, alternate, show

import weft
from weft.data.config import PRESETS

SIDES = {
    "batching": [],
    "single": ["--batch-tokens", "0"],
    "int8": ["--engine", "onnx-int8"],
    "workers": ["--workers"],
}
ABOUT = {
    "batching_vs_single": "requests per second: the defaults against one request per pass",
    "int8_vs_single": "requests per second: --engine onnx-int8 against one request per pass of torch",
    "workers_vs_single": "requests per second: --workers against one request per pass",
    "cpu": "processor time per request: one request per pass against this, which other programs disturb less",
    "half_load": "p99 at half of the throughput, at a constant rate, against the median of one client alone",
    "half_load_poisson": "the same with random arrivals",
}
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


class PacedClient(Client):
    """One connection that sends what it is given and then waits among the idle ones."""

    def __init__(self, tally: Tally, idle: "deque[PacedClient]") -> None:
        super().__init__(itertools.cycle([b""]), tally, lambda: False)
        self.idle = idle
        self.is_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def ask(self, request: bytes, due: float) -> None:
        self.is_waiting, self.buffer, self.start = True, b"", due
        self.transport.write(request)

    def _ask(self) -> None:
        """The answer is there."""
        self.is_waiting = False
        self.idle.append(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self.is_waiting:
            super().connection_lost(error)
        self.is_waiting = False


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
        """Proportional share (PSS) of the server and its workers, in megabytes: shared pages count once."""
        pages = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self._processes()]
        return sum(int(found[1]) for page in pages if (found := re.search(r"^Pss: +(\d+)", page, re.M))) / 1e3

    def cpu(self) -> float:
        """Processor time of the server and its workers, in seconds."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self._processes()]
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")

    def _processes(self) -> list[str]:
        own = str(self.process.pid)
        return [own, *Path(f"/proc/{own}/task/{own}/children").read_text().split()]

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

    def alone(self, requests: "itertools.cycle[bytes]", seconds: float) -> float:
        """Median latency of one client, in seconds."""
        return statistics.median(self.load(requests, 1, seconds).seconds)

    def paced(
        self, requests: "itertools.cycle[bytes]", clients: int, rate: float, seconds: float, *, poisson: bool
    ) -> Tally:
        """Requests that arrive at a rate, whether or not the earlier ones are answered; the clients take turns."""
        draw = random.Random(1)
        gaps = (draw.expovariate(rate) if poisson else 1 / rate for _ in itertools.count())
        due = list(itertools.takewhile(lambda at: at < seconds, itertools.accumulate(gaps)))
        with asyncio.Runner(loop_factory=fine_loop) as runner:
            return runner.run(self._arrive(requests, clients, due))

    async def _arrive(self, requests: "itertools.cycle[bytes]", clients: int, due: list[float]) -> Tally:
        """Send one request at each time; its latency counts from then, also if it was sent late."""
        tally, loop = Tally(), asyncio.get_running_loop()
        idle: deque[PacedClient] = deque()

        def connect() -> PacedClient:
            return PacedClient(tally, idle)

        for _ in range(clients):
            idle.append((await loop.create_connection(connect, "127.0.0.1", self.port))[1])
        made, start = list(idle), time.perf_counter()
        for at in due:
            await asyncio.sleep(max(0.0, start + at - time.perf_counter()))
            if not idle:
                made.append((await loop.create_connection(connect, "127.0.0.1", self.port))[1])
                idle.append(made[-1])
            idle.popleft().ask(next(requests), start + at)
        while any(client.is_waiting for client in made):
            await asyncio.sleep(0.005)
        for client in made:
            client.transport.close()
        return tally

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def fine_loop() -> asyncio.AbstractEventLoop:
    """A loop whose timers are exact to microseconds: epoll's wait whole milliseconds, which would count as latency."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


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
    parser.add_argument("--sides", default="batching,single,int8", help=f"some of {', '.join(SIDES)}")
    parser.add_argument("--workers", type=int, default=2, help="of the side `workers`")
    asked = parser.parse_args()
    asked.sides = asked.sides.split(",")
    if not {"single"} <= set(asked.sides) <= set(SIDES):
        parser.error(f"--sides: found {','.join(asked.sides)}, expected single and others of {', '.join(SIDES)}")
    return asked


def main() -> None:
    asked = arguments()
    with tempfile.TemporaryDirectory() as place:
        run = asked.model
        if run is None:  # the speed does not depend on what the weights have learnt
            run = Path(place) / "run"
            weft.train("starter", run, steps=1)
        requests = make_requests(weft.load(run, "cpu"))
        SIDES["workers"].append(str(asked.workers))
        gc.freeze()  # else Python looks through all objects of torch now and then, and clients wait for it
        servers = {name: Served(run, SIDES[name], Path(place) / f"{name}.log") for name in asked.sides}
        try:
            measure(servers, requests, asked)
        finally:
            codes = [server.stop() for server in servers.values()]
    sys.exit(any(codes))


def measure(servers: dict[str, Served], requests: "itertools.cycle[bytes]", asked: argparse.Namespace) -> None:
    tallies = {name: Tally() for name in servers}
    cpu: dict[str, list[float]] = {name: [] for name in servers}
    seconds = asked.seconds / asked.rounds
    for server in servers.values():
        server.load(requests, asked.clients, WARM)
    before = {name: server.memory() for name, server in servers.items()}

    def count(name: str, tally: Tally) -> Tally:
        tallies[name].statuses += tally.statuses
        return tally

    def rate(name: str) -> float:
        """Requests per second of one round."""
        start, used = time.perf_counter(), servers[name].cpu()
        tally = count(name, servers[name].load(requests, asked.clients, seconds))
        tallies[name].seconds += tally.seconds
        cpu[name].append((servers[name].cpu() - used) / len(tally.seconds))
        return len(tally.seconds) / (time.perf_counter() - start)

    measured = alternate({name: lambda name=name: rate(name) for name in servers}, asked.rounds)
    ratios = {f"{name}_vs_single": Ratio.of(measured[name], measured["single"]) for name in servers if name != "single"}
    ratios |= {f"{name}_cpu": Ratio.of(cpu["single"], cpu[name]) for name in servers if name != "single"}
    about = ABOUT | {f"{name}_cpu": ABOUT["cpu"] for name in servers}
    for name in ratios_of_latency(servers):
        alone: list[float] = []
        late: dict[str, list[float]] = {"half_load": [], "half_load_poisson": []}
        for number in range(asked.rounds):  # right after each other: what slows one down slows the others down
            alone.append(servers[name].alone(requests, seconds / 3))
            for key, found in late.items():
                half = measured[name][number] / 2
                random_times = key.endswith("poisson")
                tally = servers[name].paced(requests, asked.clients, half, seconds / 3, poisson=random_times)
                found.append(percentiles(count(name, tally).seconds)["p99_ms"] / 1000)
        for key, found in late.items():
            about[f"{name}_{key}"] = about[key]
            ratios[f"{name}_{key}"] = Ratio.of(found, alone)
    after = {name: server.memory() for name, server in servers.items()}
    report = {
        name: {
            "requests_per_second": round(statistics.median(measured[name]), 1),
            "cpu_ms": round(1000 * statistics.median(cpu[name]), 2),
            **percentiles(tally.seconds),
            "requests": len(tally.seconds),
            "errors": tally.errors,
            "pss_mb": [round(before[name]), round(after[name])],
        }
        for name, tally in tallies.items()
    }
    for name, numbers in report.items():
        print(name, "  ".join(f"{key} {value}" for key, value in numbers.items()))
    further = {
        "errors": sum(tally.errors for tally in tallies.values()),
        "memory_growth_mb": round(max(after[name] - before[name] for name in servers), 1),
        "clients": asked.clients,
        "seconds": asked.seconds,
        "sides": report,
    }
    show(ratios, about, further)


def ratios_of_latency(servers: dict[str, Served]) -> list[str]:
    """Sides whose latency at half load is measured: with one request per pass, half load is another load."""
    return [name for name in servers if name != "single"]


if __name__ == "__main__":
    main()
