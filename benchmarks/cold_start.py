"""How long `weft predict` takes on one text from a cold process, against the least that any program on torch needs.

    python benchmarks/cold_start.py [--model RUN] [--rounds 7]

The other side imports torch and tokenizers and reads the same weights. predict_vs_floor is the ratio of wall times;
cpu_vs_floor that of the processor time, which other programs of the machine disturb less; load_vs_floor is the same
from Python: `weft.load(RUN).predict(...)`. help_vs_typer compares `weft --help` with a program that imports the library
of its command line and nothing else. Lower is better. Files are in the system's cache and modules are compiled
on both sides.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sides import Ratio, alternate, show

import weft
from weft.runs.model_folder import model_folder

ABOUT = {
    "predict_vs_floor": "seconds of `weft predict RUN TASK TEXT` against imports and weights alone",
    "cpu_vs_floor": "the same in processor time",
    "load_vs_floor": "seconds of weft.load(RUN).predict(TASK, TEXT) against the same",
    "help_vs_typer": "seconds of `weft --help` against importing typer and rich",
    "help_cpu_vs_typer": "the same in processor time",
}
TEXT = "A quiet triumph."
FLOOR = """
import sys, torch, tokenizers
from safetensors.torch import load_file
weights = [tensor.clone() for path in sys.argv[1:] for tensor in load_file(path).values()]  # mapped until then
"""
LOAD = """
import sys, weft
weft.load(sys.argv[1], "cpu").predict(sys.argv[2], sys.argv[3])
"""


@dataclass
class Command:
    """A process that is run to its end, with its own processor time noted."""

    arguments: Sequence[str]
    environment: dict[str, str]
    cpu: list[float] = field(default_factory=list)

    def seconds(self) -> float:
        before, start = _children(), time.perf_counter()
        done = subprocess.run(self.arguments, env=self.environment, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - start
        if done.returncode:
            raise SystemExit(f"{' '.join(self.arguments[:4])} failed:\n{done.stderr}")
        self.cpu.append(_children() - before)
        return wall


def _children() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_single_task(run: Path) -> str:
    config = weft.load(run, "cpu").config
    return next(name for name, task in config.tasks.items() if task.reading == "single")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a run folder. Defaults to one step of the starter recipe")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = options.model
        if run is None:
            run = Path(place) / "run"
            weft.train("starter", run, steps=1, progress=False)
        task = first_single_task(run)
        folder = model_folder(run)
        weights = [str(folder / name) for name in ("model.safetensors", "heads.safetensors")]
        # modules are compiled once, whatever this process was told
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(place) / "compiled")
        commands = {
            "predict": [sys.executable, "-m", "weft", "predict", str(run), task, TEXT, "--device", "cpu"],
            "floor": [sys.executable, "-c", FLOOR, *weights],
            "load": [sys.executable, "-c", LOAD, str(run), task, TEXT],
            "help": [sys.executable, "-m", "weft", "--help"],
            "typer": [sys.executable, "-c", "import typer, typer.rich_utils, rich.console"],  # what prints the help
        }
        for arguments in commands.values():
            Command(arguments, environment).seconds()
        sides = {name: Command(arguments, environment) for name, arguments in commands.items()}
        measured = alternate({name: side.seconds for name, side in sides.items()}, options.rounds)
    ratios = {
        "predict_vs_floor": Ratio.of(measured["predict"], measured["floor"]),
        "cpu_vs_floor": Ratio.of(sides["predict"].cpu, sides["floor"].cpu),
        "load_vs_floor": Ratio.of(measured["load"], measured["floor"]),
        "help_vs_typer": Ratio.of(measured["help"], measured["typer"]),
        "help_cpu_vs_typer": Ratio.of(sides["help"].cpu, sides["typer"].cpu),
    }
    seconds = {name: round(sorted(found)[len(found) // 2], 3) for name, found in measured.items()}
    show(ratios, ABOUT, {"rounds": options.rounds, "seconds": seconds})


if __name__ == "__main__":
    main()
