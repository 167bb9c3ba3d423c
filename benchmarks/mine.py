"""Time and memory of the exact search of `weft mine`, on random vectors of 384 numbers.

    python benchmarks/mine.py [--sizes 100000 1000000] [--queries 4096] [--top-k 10] [--folder FOLDER]
    python benchmarks/mine.py --texts FILE --model RUN [--rows 20000]

For each size, a process of its own searches the nearest of that many candidates for the first queries. Processor
time per query times the size is that of a whole search of the file against itself. Memory is the peak of the process.
With --texts, the pairs of `weft mine` on the distinct texts of a jsonl file (column `text`) are compared with brute
force: all similarities of the vectors of `weft embed` in 64-bit floats, rounded to multiples of 2^-24, and the k
largest of each row, the earlier row first among equals.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import weft
from weft.inference.mining import itself
from weft.inference.nearest import QUERIES, Limits, VectorFile, nearest

WIDTH = 384


def write_vectors(path: Path, rows: int) -> None:
    """Random directions, written block by block."""
    draw = np.random.default_rng(0)
    with path.open("wb") as file:
        head = {"descr": "<f4", "fortran_order": False, "shape": (rows, WIDTH)}
        np.lib.format.write_array_header_1_0(file, head)
        for start in range(0, rows, 10_000):
            block = draw.standard_normal((min(10_000, rows - start), WIDTH), dtype=np.float32)
            file.write(block.tobytes())


def search(path: Path, queries: int, k: int) -> None:
    """One process: seconds and peak memory, as JSON."""
    vectors = VectorFile(path)
    start = time.process_time()
    for first in range(0, queries, QUERIES):
        nearest(vectors, range(first, min(first + QUERIES, queries)), vectors, k, Limits(hidden=itself))
    seconds = time.process_time() - start
    # not getrusage, whose peak includes that of the process that started this one
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
    print(json.dumps({"candidates": len(vectors), "seconds": round(seconds, 1), "MB": round(peak)}))


def compare(texts: list[str], model: Path, folder: Path, k: int) -> dict[str, float]:
    """Pairs of `weft mine` against brute force."""
    source, out = folder / "texts.jsonl", folder / "pairs.parquet"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    start = time.perf_counter()
    weft.mine_file(model, source, out, top_k=k)
    seconds = time.perf_counter() - start
    table = pq.read_table(out)
    found = dict(
        zip(
            zip(table["row"].to_pylist(), table["row2"].to_pylist(), strict=True),
            table["score"].to_pylist(),
            strict=True,
        )
    )
    weft.embed_file(model, source, folder / "vectors.npy")
    vectors = np.load(folder / "vectors.npy").astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected: dict[tuple[int, int], float] = {}
    for row in range(len(texts)):
        scores = np.round(vectors @ vectors[row] * 2**24) / 2**24
        scores[row] = -np.inf
        for other in np.argsort(-scores, kind="stable")[:k].tolist():
            expected[min(row, other), max(row, other)] = float(scores[other])
    shared = found.keys() & expected.keys()
    return {
        "texts": len(texts),
        "pairs": len(expected),
        "pairs of one side only": len(found.keys() ^ expected.keys()),
        "largest difference of a score": max(abs(found[pair] - expected[pair]) for pair in shared),
        "seconds of weft mine": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=4096)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.search is not None:
        search(given.search, given.queries, given.top_k)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.texts is not None:
            lines = given.texts.read_text(encoding="utf-8").splitlines()
            texts = list(dict.fromkeys(json.loads(line)["text"] for line in lines))[: given.rows]
            print(json.dumps(compare(texts, given.model, folder, given.top_k)))
            return
        for size in given.sizes:
            write_vectors(folder / "vectors.npy", size)
            command = [sys.executable, __file__, "--search", str(folder / "vectors.npy")]
            command += ["--queries", str(given.queries), "--top-k", str(given.top_k)]
            report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            whole = report["seconds"] / given.queries * size / 3600
            print(json.dumps(report | {"ms per query": round(1000 * report["seconds"] / given.queries, 2)}))
            print(f"  a whole search of {size:,} rows: {whole:.2f} hours")


if __name__ == "__main__":
    main()
