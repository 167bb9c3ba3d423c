"""Builds objects from a recipe. No other module does."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import torch

from weft.bodies.source import find_body
from weft.bodies.weights import read_shape
from weft.data.dataset import Dataset, label_column
from weft.data.frames import GivenFrames
from weft.data.labels import find_labels
from weft.data.problems import BadRows
from weft.data.remarks import remarks
from weft.data.sources import find_sources
from weft.data.task_files import TaskFiles
from weft.data.tokenizer import Tokenizer
from weft.evaluation.thresholds import tuning_notes
from weft.foundation.components import require_made
from weft.foundation.devices import choose_device
from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.kinds.truth import Truth
from weft.penalties.base import Penalty
from weft.recipes.assembly import Assembly, TaskData, fed_rows, learning_rates
from weft.recipes.costs import LEAST_ROWS, SHARE, BodyTokens, affordable_rows, count_tokens, passes_of, sample_rows
from weft.recipes.idle import (
    disabled_keys,
    mixes_tasks,
    reject_idle_methods,
    require_rows,
    scheduled,
    untrained,
    untrained_notes,
)
from weft.recipes.recipe import Recipe
from weft.runs.adoption import adopt_heads
from weft.schedules.base import Feed
from weft.schedules.plan import Plan, SegmentPlan, Stretched
from weft.schedules.sources import SourceRows
from weft.surgery.base import Surgery
from weft.tasks.building import build_network, task_files
from weft.tasks.class_weights import class_weights
from weft.tasks.constant import constant_loss, scale_notes
from weft.tasks.network import Network
from weft.training.distillation import (
    Distillation,
    StudentData,
    Teacher,
    TeacherPredictions,
    find_teachers,
    known_labels,
    require_taught,
    teacher_notes,
)
from weft.training.distributed import SOLO, Processes
from weft.training.methods import Methods, Numerics
from weft.training.optimizer import build_optimizer
from weft.training.step import Step
from weft.weighting.base import Weighting


def read_data(
    recipe: Recipe,
    tokenizer: Tokenizer,
    frames: GivenFrames | None = None,
    known: Mapping[str, Labels] | None = None,
) -> dict[str, TaskData]:
    """Read, check and tokenize the files of every task, or the `frames` in their place.

    `known` are the labels of trained tasks: those of a task without a train file that declares none.
    """
    return {name: _read_task(recipe, name, tokenizer, frames, (known or {}).get(name)) for name in recipe.tasks}


def _read_task(
    recipe: Recipe, name: str, tokenizer: Tokenizer, frames: GivenFrames | None, known: Labels | None
) -> TaskData:
    task = recipe.tasks[name]
    files = task_files(recipe, name, tokenizer, frames=frames)
    # a trained task that is only scored needs no train file, which may be gone
    learns = files.has_train and (known is None or name in scheduled(recipe))

    def labels_of(files: TaskFiles) -> Labels:
        if known is not None and not learns and (task.labels, task.range) == (None, None):
            return known
        column = label_column(task.data, files.open("train" if learns else "dev"))
        labels = find_labels(task.kind, column, task.labels, task.range, task.scale)
        return labels if task.positive is None else labels.with_positive(task.positive, f"tasks.{name}.positive")

    try:
        labels = labels_of(files)
        train = files.training(labels) if learns else None
        dev = files.dataset("dev", labels)
        unlabelled = files.open("unlabelled") if files.has("unlabelled") else None
        return TaskData(labels, dev.without_rows() if train is None else train, _scored(recipe, dev), unlabelled)
    except BadRows as bad:
        # Texts are checked while a file is tokenized, labels afterwards; one error reports the problems of both.
        problems = bad.problems
        if "bad label" not in problems.counts:
            lenient = files.skipping_bad_rows()
            with suppress(UserError):  # if the labels cannot be checked, report the problems of the texts only
                column = label_column(task.data, lenient.open_source(problems.source))
                problems.join(column.problems(labels_of(lenient)))
    raise BadRows(problems)


def _scored(recipe: Recipe, dev: Dataset) -> Dataset:
    """Dev rows to evaluate on. A sample does not depend on the seed, so runs with different seeds are comparable."""
    return dev if recipe.dev_rows is None else dev.sample(recipe.dev_rows, 0)


def build_plan(recipe: Recipe, sources: Sequence[SourceRows], steps: int | None) -> Plan:
    """Build the plan of a run; `steps` is a budget that the plan is scaled to."""
    resolved = recipe.resolved_phases()
    chosen = [chosen_sources(sources, phase.schedule.chosen(recipe.tasks)) for phase in resolved]
    batch_sizes = {source.name: batch_size(recipe, source) for own in chosen for source in own}
    # a schedule may also draw from the rows of one task of a source
    named = [source for own in (*chosen, *(chosen_sources(sources, [task]) for task in recipe.tasks)) for source in own]

    def plan_of(times: int) -> Plan:
        phases = [
            phase.schedule.segments(
                Feed(
                    {source.name: len(source) for source in own},
                    batch_sizes,
                    phase.epochs * times,
                    recipe.seed,
                    number,
                    times,
                    {source.name: source.asked for source in own},
                )
            )
            for number, (phase, own) in enumerate(zip(resolved, chosen, strict=True))
        ]
        return SegmentPlan(phases, recipe.optimizer.accumulate, named)

    plan = plan_of(1)
    if steps is None:
        return plan
    stretch = steps / plan.steps
    if stretch > 1:  # repeat the epochs until they exceed the budget, then select windows
        plan = plan_of(-(-steps // plan.steps))
    return Stretched(plan, steps, stretch)


def chosen_sources(sources: Sequence[SourceRows], tasks: Collection[str]) -> list[SourceRows]:
    """Return the rows that these tasks ask about, by source."""
    return [chosen for source in sources if (chosen := source.only(tasks)) is not None]


def batch_size(recipe: Recipe, source: SourceRows) -> int:
    """Return the batch size of a source, which all of its tasks must state alike: their rows are drawn together."""
    sizes = {task: recipe.tasks[task].batch_size for task in source.places}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"tasks.{task}.batch_size = {size}" for task, size in sizes.items())
        raise UserError(
            f"{found}: these tasks read the same texts of the same file, so each batch is drawn once for all of them; "
            "give them the same batch_size"
        )
    return next(iter(sizes.values()))


def layer_factors(recipe: Recipe, layers: int) -> dict[str, dict[int, float]]:
    """Task -> layer -> factor, for the tasks with `layer_factors`."""
    asked = {name: task.layer_factors for name, task in recipe.tasks.items()}
    return {name: factors.by_layer(layers, name) for name, factors in asked.items() if factors is not None}


def assemble(
    recipe: Recipe,
    *,
    steps: int | None = None,
    device: str = "auto",
    trust_code: bool = False,
    processes: Processes = SOLO,
    frames: GivenFrames | None = None,
) -> Assembly:
    """Build all objects of a run from a recipe; an invalid recipe raises `UserError`.

    `trust_code` allows the recipe to name custom code (`use`), which is imported here and not earlier.
    `frames` are rows given in Python.
    """
    recipe, code = recipe.with_code(trust_code, recipe.name)
    where = processes.device(choose_device(device))
    if recipe.optimizer.precision == "fp16" and where.type != "cuda":
        raise UserError(
            'optimizer.precision: "fp16" needs a GPU: on a CPU small gradients underflow and training is not faster; '
            'use "bf16" or "fp32"'
        )
    folder = find_body(recipe.body)
    tokenizer = Tokenizer.load(folder)
    tokenizer.require_fits(read_shape(folder).vocabulary)
    teachers = find_teachers(recipe.distill)
    data = read_data(recipe, tokenizer, frames, known_labels(folder, teachers))
    for teacher in teachers:
        require_taught(teacher, recipe, {name: task.labels for name, task in data.items()})
    data = _taught(data, teachers, StudentData(recipe, frames, str(where), trust_code))
    require_rows(recipe, fed_rows(data))
    weights = {
        name: class_weights(recipe.tasks[name], task.labels, task.train.targets, name)
        for name, task in data.items()
        if len(task.train)
    }
    # with mixed precision the weights stay in fp32
    dtype = torch.float64 if recipe.optimizer.precision == "fp64" else torch.float32
    network = build_network(recipe, {name: task.labels for name, task in data.items()}, folder, dtype, weights)
    for name, task in data.items():
        if len(task.train):
            network.task(name).loss.observe(task.labels.kind.flat(task.train.targets))
        if len(task.train) and task.unlabelled is not None and network.task(name).loss.sees_batch:
            loss = recipe.tasks[name].chosen_loss.name
            raise UserError(
                f"tasks.{name}.data.unlabelled: the loss {loss!r} compares the labels of all rows of a batch, so every "
                "row needs one; leave `unlabelled` out"
            )
    notes = [note for task in data.values() for note in remarks(task.train, task.dev)]
    notes += [f"doubt: tasks.{name}: {doubt}" for name, task in recipe.tasks.items() for doubt in task.data.doubts]
    notes += type_notes(recipe, network)
    tuned = [task.dev for name, task in data.items() if network.task(name).tunes_thresholds]
    notes += [note for dev in tuned for note in tuning_notes(dev.task, Truth.of(dev.labels, dev.targets))]
    notes += teacher_notes(teachers, recipe)
    adoption = adopt_heads(network, recipe, folder)
    notes += adoption.notes
    notes = list(dict.fromkeys(notes))  # tasks of one source have the same notes about their file
    constants = {
        name: constant_loss(
            network.task(name).loss,
            task.labels.kind.flat((task.train if len(task.train) else task.dev).targets),
            recipe.tasks[name].head.bounds,
            recipe.tasks[name].batch_size,
        )
        for name, task in data.items()
    }
    network.to(where)
    network.body.recompute = recipe.optimizer.gradient_checkpointing
    sources = [SourceRows(source.places) for source in find_sources(fed_rows(data))]
    plan = build_plan(recipe, sources, steps)
    unfed = untrained(recipe, plan)
    notes += untrained_notes(unfed, plan.steps, recipe, network, adoption.tasks)
    notes += disabled_keys(recipe, plan, learning_rates(recipe, plan).warmup, budget=steps is not None)
    step = build_step(recipe, data, network, plan, where, constants, processes)
    if not step.weighting.heeds_scale and mixes_tasks(plan):
        notes += scale_notes(constants, unfed)
    made = Assembly(recipe, code, tokenizer, data, network, plan, step, unfed, {}, notes)
    sample = choose_dev_sample(made, lambda: build_plan(recipe.model_copy(update={"seed": 0}), sources, steps))
    return replace(made, dev_sample=sample, notes=[*notes, *sample_notes(sample, data)])


def choose_dev_sample(made: Assembly, plan_of_any_seed: Callable[[], Plan]) -> dict[str, Dataset]:
    """Choose the dev rows of evaluations during training, from the recipe and the number of tokens alone.

    The cost is that of the plan for a fixed seed, so that all seeds are evaluated on the same rows.
    """
    recipe, dev = made.recipe, {name: task.dev for name, task in made.data.items()}
    evaluations = len(made.plan.evaluations)
    if recipe.dev_sample == "all" or evaluations == 1:  # the only evaluation is the final one
        return dev
    if recipe.dev_sample != "auto":
        return sample_rows(dev, recipe.dev_sample)
    if max(map(len, dev.values())) <= LEAST_ROWS:
        return dev
    passes = [passes_of(made.network, mode) for mode in recipe.modes()]
    training = BodyTokens.of(made.data, made.step).of_training(plan_of_any_seed(), passes)
    return sample_rows(dev, affordable_rows(dev, SHARE * training / evaluations - count_tokens(made.train_sample())))


def sample_notes(sample: Mapping[str, Dataset], data: Mapping[str, TaskData]) -> list[str]:
    """Note how many dev rows are evaluated during training, if not all."""
    fewer = {name: rows for name, rows in sample.items() if len(rows) < len(data[name].dev)}
    if not fewer:
        return []
    found = ", ".join(f"{len(rows):,} of {len(data[name].dev):,} {name}" for name, rows in fewer.items())
    return [
        f"dev_sample: evaluations during training score a fixed sample of the dev rows ({found}); the best model is "
        "scored on all rows at the end"
    ]


def _taught(data: Mapping[str, TaskData], teachers: Sequence[Teacher], student: StudentData) -> dict[str, TaskData]:
    """Add the predictions of its teachers to each task that has any."""
    taught = {}
    for name, task in data.items():
        own = [teacher for teacher in teachers if teacher.teaches(name)]
        if task.unlabelled is not None and not own:
            raise UserError(
                f"tasks.{name}.data.unlabelled: no teacher predicts these rows; name one with this task in "
                "distill.teachers, or leave `unlabelled` out"
            )
        taught[name] = replace(task, lesson=TeacherPredictions(name, own, task.fed, student) if own else None)
    return taught


def type_notes(recipe: Recipe, network: Network) -> list[str]:
    """What to know of pairs if the body has no token types."""
    pairs = [name for name, task in recipe.tasks.items() if task.reading == "cross"]
    if not pairs or network.body.has_segments:
        return []
    title = network.body.family.title
    return [
        f"the body ({title}) has no token type embeddings: in {', '.join(pairs)}, read by cross, special tokens alone "
        "separate the two texts, as in its pretraining"
    ]


def build_step(
    recipe: Recipe,
    data: dict[str, TaskData],
    network: Network,
    plan: Plan,
    device: torch.device,
    constants: Mapping[str, float],
    processes: Processes = SOLO,
) -> Step:
    """Build the optimizer step of a recipe, with all of its methods."""
    layers = len(network.body.layers)  # sets of weights: layers that share theirs count as one
    modes = recipe.modes()
    for mode in modes:
        mode.check(layers)
    weighting = recipe.weighting.build(tuple(recipe.tasks))
    require_made(recipe.weighting, weighting, Weighting, "weighting")
    weighting.to(device).calibrate(constants)
    surgery = recipe.surgery.build()
    require_made(recipe.surgery, surgery, Surgery, "surgery")
    penalties = [penalty.build() for penalty in recipe.penalties]
    for number, (config, penalty) in enumerate(zip(recipe.penalties, penalties, strict=True)):
        require_made(config, penalty, Penalty, f"penalties.{number}")
    factors = layer_factors(recipe, layers)
    unlabelled = frozenset(name for name, task in data.items() if not len(task.train))
    distillation = None if recipe.distill is None else Distillation(recipe.distill, plan.steps, unlabelled)
    reject_idle_methods(recipe, plan, weighting)
    return Step(
        network,
        fed_rows(data),
        build_optimizer(network, weighting, recipe.optimizer, modes),
        Methods(weighting, surgery, factors, penalties, distillation),
        Numerics(device, recipe.optimizer.precision, recipe.optimizer.clip),
        seed=recipe.seed,
        log=recipe.log,
        processes=processes,
    )
