"""The only place that turns a recipe into objects."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from weft.data.dataset import Dataset, label_column
from weft.data.labels import Labels, find_labels
from weft.data.problems import BadRows
from weft.data.readings import Reader
from weft.data.remarks import remarks
from weft.data.task_files import TaskFiles
from weft.data.tokenizer import Tokenizer
from weft.deliverable import adopt_heads, run_result, save_model, save_predictions
from weft.errors import RunError, UserError
from weft.idle import disabled_keys, refuse_idle_methods, refuse_lonely_heads, untrained, untrained_notes
from weft.nn.source import find_body
from weft.nn.weights import load_body
from weft.randomness import seeded
from weft.recipe import Recipe, as_dict, recipe_toml
from weft.report.page import write_report
from weft.schedules.base import Feed
from weft.schedules.plan import Plan, SegmentPlan, Stretched
from weft.tasks.class_weights import class_weights
from weft.tasks.constant import constant_loss, scale_notes
from weft.tasks.network import Network
from weft.tasks.task import build_task
from weft.trackers.follower import Follower
from weft.training.checkpoint import Progress
from weft.training.distributed import SOLO, Processes
from weft.training.environment import environment
from weft.training.optimizer import build_optimizer
from weft.training.phases import Rates
from weft.training.resuming import refuse_other_run
from weft.training.run_folder import Bystander, RunFolder
from weft.training.step import Step
from weft.training.trainer import Evaluation, Listener, Trainer


@dataclass(frozen=True)
class TaskData:
    labels: Labels
    train: Dataset
    dev: Dataset


def read_data(recipe: Recipe, tokenizer: Tokenizer) -> dict[str, TaskData]:
    """Every task's files, read, checked and tokenized."""
    return {name: _read_task(recipe, name, tokenizer) for name in recipe.tasks}


def _read_task(recipe: Recipe, name: str, tokenizer: Tokenizer) -> TaskData:
    task = recipe.tasks[name]
    files = task_files(recipe, name, tokenizer)

    def labels_of(files: TaskFiles) -> Labels:
        column = label_column(task.data, files.open("train"))
        labels = find_labels(task.kind, column, task.labels, task.range, task.scale)
        return labels if task.positive is None else labels.with_positive(task.positive, f"tasks.{name}.positive")

    try:
        labels = labels_of(files)
        return TaskData(labels, files.dataset("train", labels), _scored(recipe, files.dataset("dev", labels)))
    except BadRows as bad:
        # Texts are checked while a file is tokenized, labels afterwards: a person wants to hear of both at once.
        problems = bad.problems
        if "bad label" not in problems.counts:
            lenient = files.skipping_bad_rows()
            with suppress(UserError):  # if nothing can be said of the labels, the texts' problems are enough
                column = label_column(task.data, lenient.open_path(problems.path))
                problems.join(column.problems(labels_of(lenient)))
    raise BadRows(problems)


def _scored(recipe: Recipe, dev: Dataset) -> Dataset:
    """The dev rows that count; a sample does not follow the seed, so that runs of all seeds compare."""
    return dev if recipe.dev_rows is None else dev.sample(recipe.dev_rows, 0)


def task_files(recipe: Recipe, task: str, tokenizer: Tokenizer, data_dir: Path | None = None) -> TaskFiles:
    reader = build_reader(recipe, task, tokenizer)
    return TaskFiles(task, recipe.tasks[task].data, reader, tokenizer, recipe.seed, data_dir)


def build_reader(recipe: Recipe, task: str, tokenizer: Tokenizer) -> Reader:
    return Reader(recipe.tasks[task].reading, tokenizer.cls, tokenizer.sep, recipe.max_length)


def build_network(
    recipe: Recipe,
    labels: dict[str, Labels],
    folder: Path,
    weights: dict[str, torch.Tensor | None] | None = None,
) -> Network:
    """The body of `folder` with fresh heads, each drawn from a seed of its own; `weights` are class weights."""
    with seeded(recipe.seed, "body", "start"):
        body = load_body(folder, dropout=recipe.body_dropout, attention_dropout=recipe.body_dropout)
    if recipe.max_length > body.shape.positions:
        raise UserError(f"max_length: found {recipe.max_length}, but the body has {body.shape.positions} positions")
    if not recipe.segments:
        body.leave_segments_out()
    tasks = []
    shared: dict[str, nn.Module] = {}
    refuse_lonely_heads(recipe)
    for name, config in recipe.tasks.items():
        with seeded(recipe.seed, name, "start"):
            own = (weights or {}).get(name)
            tasks.append(build_task(name, config, labels[name], body, recipe.dropout, shared, own))
    # mixed precision keeps its weights in fp32
    return Network(body, tasks).to(torch.float64 if recipe.optimizer.precision == "fp64" else torch.float32)


def build_plan(recipe: Recipe, sizes: dict[str, int], steps: int | None) -> Plan:
    """All windows of a run; `steps` is a budget that stretches or shrinks them."""
    batch_sizes = {name: task.batch_size for name, task in recipe.tasks.items()}

    def plan_of(times: int) -> Plan:
        phases = [
            phase.schedule.segments(
                Feed(phase.schedule.chosen(sizes), batch_sizes, phase.epochs * times, recipe.seed, number, times)
            )
            for number, phase in enumerate(recipe.resolved_phases())
        ]
        return SegmentPlan(phases, recipe.optimizer.accumulate)

    plan = plan_of(1)
    if steps is None:
        return plan
    stretch = steps / plan.steps
    if stretch > 1:  # more epochs of the same, of which the budget then takes its share
        plan = plan_of(-(-steps // plan.steps))
    return Stretched(plan, steps, stretch)


def build_rates(recipe: Recipe, plan: Plan) -> Rates:
    """Under a budget, warm-up keeps its share of the run."""
    stretch = plan.stretch if isinstance(plan, Stretched) else 1.0
    return Rates(plan, recipe.resolved_phases(), recipe.optimizer, stretch)


def layer_factors(recipe: Recipe, layers: int) -> dict[str, dict[int, float]]:
    """task -> layer -> factor, for the tasks that ask for it."""
    asked = {name: task.layer_factors for name, task in recipe.tasks.items()}
    return {name: factors.by_layer(layers, name) for name, factors in asked.items() if factors is not None}


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise UserError(f"--device {name}: expected auto, cpu, cuda or cuda:N")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device {name}: torch finds no CUDA device here; use --device cpu")
    return device


@dataclass(frozen=True)
class Assembly:
    """Everything a run is made of, built and checked; nothing is written yet."""

    recipe: Recipe
    tokenizer: Tokenizer
    data: dict[str, TaskData]
    network: Network
    plan: Plan
    step: Step
    untrained: list[str]
    """tasks that are scored but get no batch"""
    notes: list[str]
    """what the user should know before trusting the scores"""


def assemble(
    recipe: Recipe, *, steps: int | None = None, device: str = "auto", processes: Processes = SOLO
) -> Assembly:
    """Turn a recipe into objects, or say what in it cannot be."""
    where = processes.device(choose_device(device))
    if recipe.optimizer.precision == "fp16" and where.type != "cuda":
        raise UserError(
            'optimizer.precision: "fp16" needs a GPU: on a CPU its small numbers vanish and nothing gets faster; '
            'use "bf16" or "fp32" here'
        )
    folder = find_body(recipe.body)
    tokenizer = Tokenizer.load(folder)
    data = read_data(recipe, tokenizer)
    weights = {
        name: class_weights(recipe.tasks[name], task.labels, task.train.targets, name) for name, task in data.items()
    }
    network = build_network(recipe, {name: task.labels for name, task in data.items()}, folder, weights)
    notes = [note for task in data.values() for note in remarks(task.train, task.dev)]
    notes += [f"doubt: tasks.{name}: {doubt}" for name, task in recipe.tasks.items() for doubt in task.data.doubts]
    adoption = adopt_heads(network, recipe, folder)
    notes += adoption.notes
    network.to(where)
    network.body.recompute = recipe.optimizer.gradient_checkpointing
    plan = build_plan(recipe, {name: len(task.train) for name, task in data.items()}, steps)
    unfed = untrained(recipe, plan)
    notes += untrained_notes(unfed, plan.steps, recipe, network, adoption.tasks)
    notes += disabled_keys(recipe, plan, build_rates(recipe, plan).warmup, budget=steps is not None)
    constants = {
        name: constant_loss(network.task(name).loss, task.train.targets, recipe.tasks[name].head.bounds)
        for name, task in data.items()
    }
    step = build_step(recipe, data, network, plan, where, constants, processes)
    if not step.weighting.heeds_scale:
        notes += scale_notes(constants, unfed)
    return Assembly(recipe, tokenizer, data, network, plan, step, unfed, notes)


def build_step(
    recipe: Recipe,
    data: dict[str, TaskData],
    network: Network,
    plan: Plan,
    device: torch.device,
    constants: Mapping[str, float],
    processes: Processes = SOLO,
) -> Step:
    """The optimizer step of a recipe, with all methods that act in it."""
    layers = network.body.shape.layers
    modes = recipe.modes()
    for mode in modes:
        mode.check(layers)
    weighting = recipe.weighting.build(tuple(recipe.tasks)).to(device)
    weighting.calibrate(constants)
    surgery = recipe.surgery.build()
    factors = layer_factors(recipe, layers)
    refuse_idle_methods(recipe, plan, weighting)
    return Step(
        network,
        {name: task.train for name, task in data.items()},
        weighting,
        build_optimizer(network, weighting, recipe.optimizer, modes),
        clip=recipe.optimizer.clip,
        seed=recipe.seed,
        device=device,
        precision=recipe.optimizer.precision,
        surgery=surgery,
        layer_factors=factors,
        penalties=[penalty.build() for penalty in recipe.penalties],
        log=recipe.log,
        processes=processes,
    )


def train(
    recipe: Recipe,
    out: Path,
    listener: Listener,
    *,
    steps: int | None = None,
    device: str = "auto",
    resume: bool = False,
    followers: Sequence[Callable[[dict[str, Any]], None]] = (),
    processes: Processes = SOLO,
) -> dict[str, Any]:
    """Train a recipe into a run folder and return what is in its result.json.

    `followers` get every record of the run's log, and may end the run by an exception of their own. Of several
    `processes` each calls this; the first one alone writes and gets the result.
    """
    with processes.agreement():
        made = assemble(recipe, steps=steps, device=device, processes=processes)
        network, plan = made.network, made.plan
        content = {name: {"train": task.train.file.key, "dev": task.dev.file.key} for name, task in made.data.items()}
        settings = {"recipe": as_dict(recipe), "steps": plan.steps, "data": content}
        if resume:
            refuse_other_run(out, settings)
        wanted = recipe.trackers if processes.leads else ()
        trackers = [config.build(out, recipe.name, as_dict(recipe)) for config in wanted]
        # nothing is written before this line
        run = RunFolder(out, resume=resume) if processes.leads else Bystander(out)
    tracking = [Follower(tracker, listener.noted) for tracker in trackers]
    run.followers += [*tracking, *followers]
    try:
        run.write_text("recipe.toml", recipe_toml(recipe))
        run.write_json("environment.json", environment(made.step.device) | {"processes": processes.count})
        for note in made.notes:
            listener.noted(note)
        train = {name: task.train for name, task in made.data.items()}
        dev = {name: task.dev for name, task in made.data.items()}

        def save_best(evaluation: Evaluation) -> None:
            run.replace_folder("predictions", lambda to: save_predictions(evaluation, dev, to))
            run.replace_folder(
                "model", lambda to: save_model(network, made.tokenizer, recipe, evaluation, train, dev, to)
            )

        trainer = Trainer(
            network=network,
            dev=dev,
            train_sample=train_sample(recipe, made.data),
            plan=plan,
            step=made.step,
            rates=build_rates(recipe, plan),
            untrained=made.untrained,
            modes=recipe.modes(),
            run=run,
            settings=settings,
            every_steps=recipe.checkpoint.every_steps,
            patience=recipe.patience,
            save_best=save_best,
            listener=listener,
            processes=processes,
        )
        progress = trainer.fit()
        if not processes.leads:
            return {}
        _say_how_it_ended(recipe, progress, plan, listener)
        result = run_result(recipe, run, network, progress.seconds, progress.tokens)
        result["planned_steps"] = plan.steps
        run.write_json("result.json", result)
        write_report([out], out / "report.html")
        return result
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{out}: cannot be written ({error}). What was saved before is intact: "
            "make room or mend the folder, then go on with --resume"
        ) from None
    finally:
        for follower in tracking:
            follower.close()
        run.close()


def _say_how_it_ended(recipe: Recipe, progress: Progress, plan: Plan, listener: Listener) -> None:
    """A run that ends before its plan does says so, and why."""
    if progress.step < plan.steps:
        listener.noted(
            f"stopped early, after step {progress.step:,} of {plan.steps:,}: {progress.waited} evaluations in a row "
            f"were no better than the one after step {progress.best_step:,} (patience = {recipe.patience})"
        )


def train_sample(recipe: Recipe, data: dict[str, TaskData]) -> dict[str, Dataset]:
    """The train rows that every evaluation scores beside the dev rows."""
    rows = recipe.log.train_rows
    return {name: task.train.sample(rows, recipe.seed) for name, task in data.items()} if rows else {}
