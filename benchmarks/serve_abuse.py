"""What honest clients notice while others abuse the server: by single requests, by a flood, in a soak.

    python benchmarks/serve_abuse.py [--model RUN] [--seconds S] [--clients N] [--abusers N] [--posts N]

One server runs on the loopback address.
Stalls: each kind in `ABUSE` alone, while a client asks for /healthz without a pause. The longest wait tells how long
the event loop stood still.
Flood: every abuser posts 0.9 MB so many times, and closes its connection at once or waits for the answer; meanwhile a
few honest clients send requests of one word.
Soak: many honest clients for so many seconds, and one abuser of each kind that sends again a tenth of a second later.
The last line is JSON: latency and statuses of the honest clients, statuses of the abusers, and resident memory. All
counts and times are bounded.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from serve_load import Served, Tally, make_requests, percentiles

import weft

HONEST = 8
"""clients that send one word each while the flood lasts"""
SETTLE = 15.0
"""seconds after a part before memory is measured"""
PAUSE = 0.1
"""seconds between two requests of an abuser in the soak"""
STALLS = 5
"""requests of each kind, one after the other"""
LIMIT = 30.0
"""seconds that an abuser waits for an answer at most"""
WORDS = "the ferry left before noon and nobody on the pier could say why "

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def request(body: bytes, headers: str = "", path: str = "/v1/predict", host: str = "localhost") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def json_request(content: object) -> bytes:
    return request(json.dumps(content).encode())


LARGE = json_request({"text": [(WORDS * 400)[:19_900]] * 45})
"""0.9 MB within all limits"""


@dataclass
class Abuser:
    """Connections of one kind; what came back, by status."""

    port: int
    statuses: Counter[str] = field(default_factory=Counter)

    async def send(self, data: bytes, *, wait: bool = True, stall: float = 0.0) -> None:
        """Send on a new connection, stay silent for `stall` seconds, and read the status or leave."""
        status = "closed"
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            self.statuses["no connection"] += 1
            return
        try:
            async with asyncio.timeout(LIMIT):
                writer.write(data)
                await writer.drain()
                await asyncio.sleep(stall)
                if wait:
                    status = (await reader.readline()).split(b" ")[1].decode()
        except TimeoutError:
            status = "no answer"
        except (OSError, IndexError):
            status = "closed by the server"
        finally:
            writer.transport.abort()
            self.statuses[status] += 1


Abuse = Callable[[Abuser], Awaitable[None]]
EXTRA = b'"' + b'": 0, "'.join(b"%d" % number for number in range(80_000)) + b'": 0'
ABUSE: dict[str, Abuse] = {
    "large, waits": lambda abuser: abuser.send(LARGE),
    "large, leaves": lambda abuser: abuser.send(LARGE, wait=False),
    "half of a body": lambda abuser: abuser.send(LARGE[:400_000], wait=False, stall=1.0),
    "headers that never end": lambda abuser: abuser.send(
        b"POST /v1/predict HTTP/1.1\r\nHost: loc", wait=False, stall=2.0
    ),
    "490,000 wrong tasks": lambda abuser: abuser.send(request(b'{"text": "a", "tasks": [' + b"1," * 490_000 + b"1]}")),
    "80,000 unknown keys": lambda abuser: abuser.send(request(b'{"text": "a", %b}' % EXTRA)),
    "330,000 lists": lambda abuser: abuser.send(request(b'{"text": [' + b"[]," * 330_000 + b"1]}")),
    "deep": lambda abuser: abuser.send(request(b"[" * 900_000)),
    "too large": lambda abuser: abuser.send(request(b" " * 2_000_000)),
    "many short texts": lambda abuser: abuser.send(json_request({"text": [WORDS * 8] * 256})),
    "two lengths": lambda abuser: abuser.send(request(b'{"text": "a"}', "Transfer-Encoding: chunked\r\n")),
    "another host": lambda abuser: abuser.send(request(b'{"text": "a"}', host="elsewhere.example")),
    "another origin": lambda abuser: abuser.send(request(b'{"text": "a"}', "Origin: http://elsewhere.example\r\n")),
    "not HTTP": lambda abuser: abuser.send(b"\x16\x03\x01" + bytes(range(256)) + b"\r\n\r\n"),
}


class Memory:
    """Resident megabytes of a server, sampled while something runs."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.samples = [server.memory()]

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self.samples.append(self.server.memory())


async def stalls(server: Served) -> dict[str, float]:
    """The longest wait for /healthz in milliseconds, while nothing happens and by kind of abuse."""
    found = {}
    for name, abuse in {"nothing": lambda _: asyncio.sleep(0.5), **ABUSE}.items():
        ended = False
        asking = asyncio.create_task(server.ask(itertools.cycle([HEALTH]), 1, lambda: ended))  # noqa: B023
        for _ in range(STALLS):
            await abuse(Abuser(server.port))
        ended = True
        found[name] = round(1000 * max((await asking).seconds), 1)
    return found


async def flood(server: Served, abusers: int, posts: int) -> dict[str, object]:
    """The honest clients begin before the abusers, and end after them."""
    memory, abuser, ended = Memory(server), Abuser(server.port), False
    watching = asyncio.create_task(memory.watch())
    word = itertools.cycle([json_request({"text": "hello"})])
    asking = asyncio.create_task(server.ask(word, HONEST, lambda: ended))
    await asyncio.sleep(1.0)
    start = time.perf_counter()

    async def abuse(number: int) -> None:
        for _ in range(posts):
            await abuser.send(LARGE, wait=bool(number % 2))

    await asyncio.gather(*(abuse(number) for number in range(abusers)))
    seconds = time.perf_counter() - start
    ended = True
    tally = await asking
    await asyncio.sleep(SETTLE)
    watching.cancel()
    return {
        **told(tally),
        "abusers": dict(abuser.statuses),
        "seconds": round(seconds, 1),
        "rss_mb": [round(memory.samples[0]), round(max(memory.samples)), round(server.memory())],
        "rss_growth_mb": round(server.memory() - memory.samples[0], 1),
    }


async def soak(server: Served, requests: "itertools.cycle[bytes]", clients: int, seconds: float) -> dict[str, object]:
    """Memory is flat if the median of the last third is that of the second: the first third is for warming up."""
    memory = Memory(server)
    watching = asyncio.create_task(memory.watch())
    end = time.perf_counter() + seconds
    kinds = {name: Abuser(server.port) for name in ABUSE}

    async def abuse(name: str) -> None:
        while time.perf_counter() < end:
            await ABUSE[name](kinds[name])
            await asyncio.sleep(PAUSE)

    abusing = asyncio.gather(*(abuse(name) for name in ABUSE))
    tally = await server.ask(requests, clients, lambda: time.perf_counter() >= end)
    await abusing
    watching.cancel()
    third = len(memory.samples) // 3
    middle, last = (statistics.median(memory.samples[third * i : third * (i + 1)]) for i in (1, 2))
    return {
        **told(tally),
        "abusers": {name: dict(abuser.statuses) for name, abuser in kinds.items()},
        "rss_mb": [round(memory.samples[0]), round(middle), round(last), round(max(memory.samples))],
        "rss_growth_mb": round(last - middle, 1),
    }


def told(tally: Tally) -> dict[str, object]:
    numbers = {"requests": len(tally.seconds), "statuses": dict(tally.statuses), **percentiles(tally.seconds)}
    return numbers | {"max_ms": round(1000 * max(tally.seconds), 1)}


def failures(report: object) -> int:
    """How many answers, to whomever, had a status of 5xx."""
    if not isinstance(report, dict):
        return 0
    return sum(n if str(key).startswith("5") and isinstance(n, int) else failures(n) for key, n in report.items())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a run folder; default: one step of the starter recipe")
    parser.add_argument("--clients", type=int, default=64, help="honest clients of the soak")
    parser.add_argument("--seconds", type=float, default=600, help="of the soak")
    parser.add_argument("--abusers", type=int, default=150, help="connections of the flood")
    parser.add_argument("--posts", type=int, default=4, help="requests of each of them")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    with tempfile.TemporaryDirectory() as place:
        run = asked.model
        if run is None:
            run = Path(place) / "run"
            weft.train("starter", run, steps=1)
        requests = make_requests(weft.load(run, "cpu"))
        server = Served(run, [], Path(place) / "log")
        try:
            server.load(requests, HONEST, 5.0)  # allocators grow until they have met the largest batches
            report: dict[str, object] = {"stall_ms": asyncio.run(stalls(server))}
            print("stalls", json.dumps(report["stall_ms"]))
            if asked.abusers:
                report["flood"] = asyncio.run(flood(server, asked.abusers, asked.posts))
                print("flood", json.dumps(report["flood"]))
            if asked.seconds:
                report["soak"] = asyncio.run(soak(server, requests, asked.clients, asked.seconds))
                print("soak", json.dumps(report["soak"]))
        finally:
            code = server.stop()
    print(json.dumps({"failures": failures(report), **report}))
    sys.exit(code)


if __name__ == "__main__":
    main()
