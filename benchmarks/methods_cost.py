"""What gradient surgery, SMART and LoRA cost: seconds of a step on the same windows, one against the other.

    python benchmarks/methods_cost.py [--data-dir DIR] [--steps 10] [--rounds 3] [--cpu-time]

pcgrad_vs_apart: PCGrad against the tasks' gradients kept apart and summed. pcgrad_vs_joint: against all tasks in one
pass. smart_vs_plain: SMART on all tasks against the same step without. distill_vs_plain: with a teacher of all tasks,
whose predictions are computed before, against without. ema_vs_plain: with a moving average of all weights.
lora_vs_full: a LoRA adapter for each task on a frozen body, all tasks in one pass, against training the whole body.
lora_vs_passes: against the same adapters in one pass for each task. Lower is better. peak_mib is the memory of each
side in a process of its own; what PCGrad adds should be its buffers, one gradient of the body for each task.
optimizer_mib is the state of AdamW alone.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sides import Ratio, alternate, recipe_for, show

from weft.build import assemble
from weft.inference.evaluate import evaluate_network
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import load_recipe
from weft.runs.model_folder import save_model
from weft.training.averaging import WeightAverage
from weft.training.trainable import set_trainable

ABOUT = {
    "pcgrad_vs_apart": "seconds of a step against gradients kept apart and summed",
    "pcgrad_vs_joint": "seconds of a step against all tasks in one pass",
    "smart_vs_plain": "seconds of a step with SMART on all tasks against without",
    "distill_vs_plain": "seconds of a step with a teacher of all tasks against without",
    "ema_vs_plain": "seconds of a step with a moving average of the weights against without",
    "lora_vs_full": "seconds of a step with a LoRA adapter for each task against full fine-tuning",
    "lora_vs_passes": "seconds of a step with these adapters in one pass against one pass for each task",
}
SIDES = {
    "joint": [],
    "apart": ["tasks.*.layer_factors={ layers = [0] }"],  # factors of one: kept apart, then summed
    "pcgrad": ["surgery=pcgrad"],
    "smart": ["tasks.*.regularizer=smart"],
    "distill": [],  # and the teacher, which is written first
    "ema": ["average=ema"],
    "lora": ["adapter={ name = 'lora', per_task = true }"],
    "lora-passes": ["adapter={ name = 'lora', per_task = true }"],
}


def optimizer_mib(made: Assembly) -> float:
    """The memory of the optimizer's moments, after at least one step."""
    tensors = [tensor for own in made.step.optimizer.state.values() for tensor in own.values()]
    return round(sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 2**20, 2)


def seconds(made: Assembly, steps: int, clock: Callable[[], float] = time.perf_counter) -> float:
    made.network.train()
    average = made.recipe.average and WeightAverage(made.network, made.recipe.average, made.plan.steps)
    made.step(made.plan.window(0), 1e-5)
    start = clock()
    for step in range(1, 1 + steps):
        made.step(made.plan.window(step), 1e-5)
        if average:
            average.update(step)
    return (clock() - start) / steps


def write_teacher(folder: Path, name: str, settings: list[str], data_dir: Path | None) -> Path:
    """A model folder of the recipe's tasks with untrained heads: what it predicts makes no difference to the time."""
    made = assemble(load_recipe(name, settings=settings, data_dir=data_dir))
    train, dev = ({name: getattr(task, split) for name, task in made.data.items()} for split in ("train", "dev"))
    few = {name: dataset.sample(64, 0) for name, dataset in dev.items()}
    evaluation = evaluate_network(made.network, few, 0, made.step.device)
    save_model(made.network, made.tokenizer, made.recipe, evaluation, train, few, folder)
    return folder


def peak_mib(side: str, steps: int, rest: list[str]) -> int:
    """The largest memory of a process that takes steps of one side."""
    command = [sys.executable, __file__, "--only", side, "--steps", str(steps), *rest]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu-time", action="store_true", help="measure CPU time, for a busy machine")
    parser.add_argument("--only", choices=list(SIDES), help="take steps of one side and print the memory it took")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder))


def run(options: argparse.Namespace, folder: Path) -> None:
    name, settings = recipe_for(options.data_dir)
    sides = {side: own for side, own in SIDES.items() if options.only in (None, side)}
    if "distill" in sides:
        teacher = write_teacher(folder, name, settings, options.data_dir)
        sides["distill"] = [f'distill.teachers=["{teacher}"]']
    made = {
        side: assemble(load_recipe(name, settings=[*settings, *own], data_dir=options.data_dir))
        for side, own in sides.items()
    }
    if "lora-passes" in made:
        made["lora-passes"].step._groups = lambda parts: [(part.task, [part]) for part in parts]  # type: ignore[method-assign]
    for one in made.values():
        set_trainable(one.network, one.recipe.trainable)
        for lesson in one.lessons.values():
            lesson.prepare()
    if options.only:
        seconds(made[options.only], options.steps)
        # getrusage would also count the process that started this one
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
        return
    clock = time.process_time if options.cpu_time else time.perf_counter
    measured = alternate(
        {side: lambda one=one: seconds(one, options.steps, clock) for side, one in made.items()}, options.rounds
    )
    ratios = {
        "pcgrad_vs_apart": Ratio.of(measured["pcgrad"], measured["apart"]),
        "pcgrad_vs_joint": Ratio.of(measured["pcgrad"], measured["joint"]),
        "smart_vs_plain": Ratio.of(measured["smart"], measured["joint"]),
        "distill_vs_plain": Ratio.of(measured["distill"], measured["joint"]),
        "ema_vs_plain": Ratio.of(measured["ema"], measured["joint"]),
        "lora_vs_full": Ratio.of(measured["lora"], measured["joint"]),
        "lora_vs_passes": Ratio.of(measured["lora"], measured["lora-passes"]),
    }
    rest = ["--data-dir", str(options.data_dir)] if options.data_dir else []
    body = made["pcgrad"].network.body
    buffers = len(made["pcgrad"].data) * sum(p.numel() * p.element_size() for p in body.parameters())
    show(
        ratios,
        ABOUT,
        {
            "peak_mib": {side: peak_mib(side, options.steps, rest) for side in SIDES},
            "buffers_mib": buffers // 2**20,
            "optimizer_mib": {side: optimizer_mib(made[side]) for side in ("joint", "lora")},
        },
    )


if __name__ == "__main__":
    main()
