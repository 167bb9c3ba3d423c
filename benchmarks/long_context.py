"""Time and memory of one training step on long texts: a ModernBERT-base shape beside `transformers`.

    python benchmarks/long_context.py [--lengths 128 512 2048] [--steps 2]

Every measurement is a process of its own, so that its peak memory is its own. A step is a forward and a backward pass
over one sequence of random tokens, without an optimizer. `checkpointing` recomputes each layer in the backward pass.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SIDES = ("weft", "weft, checkpointing", "transformers", "transformers, checkpointing")


def measure(side: str, folder: str, length: int, steps: int) -> dict[str, float]:
    """Seconds of a step after the first, and peak memory beyond that of the loaded body, in MiB."""
    import torch

    recompute = side.endswith("checkpointing")
    torch.manual_seed(0)
    ids = torch.randint(5, 30000, (length,))
    if side.startswith("weft"):
        from weft.bodies.weights import load_body
        from weft.foundation.values import Encoded

        body = load_body(Path(folder)).train()
        body.recompute = recompute
        encoded = Encoded(ids, torch.zeros_like(ids), (length,))

        def step() -> None:
            body(encoded)[-1].sum().backward()

    else:
        from transformers import AutoModel

        model = AutoModel.from_pretrained(folder, attn_implementation="sdpa").train()
        if recompute:
            model.gradient_checkpointing_enable()

        def step() -> None:
            model(input_ids=ids[None]).last_hidden_state.sum().backward()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    seconds = (time.perf_counter() - start) / steps
    return {"seconds": seconds, "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--one", nargs=3, metavar=("SIDE", "FOLDER", "LENGTH"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        side, folder, length = asked.one
        print(json.dumps(measure(side, folder, int(length), asked.steps)))
        return
    from shapes import write_shape

    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_shape("modernbert-base", Path(folder))
        print(f"{'tokens':>6}  {'side':<28}{'s a step':>9}{'MiB':>8}")
        for length in asked.lengths:
            for side in SIDES:
                command = [sys.executable, __file__, "--steps", str(asked.steps), "--one", side, folder, str(length)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                own = json.loads(done.stdout.splitlines()[-1])
                found[f"{side}/{length}"] = own
                print(f"{length:>6}  {side:<28}{own['seconds']:>9.2f}{own['memory']:>8.0f}", flush=True)
    print(json.dumps({key: {name: round(value, 3) for name, value in own.items()} for key, own in found.items()}))


if __name__ == "__main__":
    main()
