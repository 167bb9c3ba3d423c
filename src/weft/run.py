"""Trains one run: from a recipe to a run folder."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError

from weft.build import assemble
from weft.data.dataset import Dataset
from weft.data.frames import GivenFrames
from weft.evaluation.scoring import Evaluation
from weft.foundation.content import Content
from weft.foundation.errors import RunError
from weft.foundation.own_code import code_digests
from weft.recipes.recipe import Recipe, recipe_toml
from weft.report.page import write_report
from weft.runs.environment import environment
from weft.runs.folder import Bystander, RunFolder
from weft.runs.model_folder import save_model
from weft.runs.predictions import save_predictions
from weft.runs.records import RunResult
from weft.runs.result import run_result
from weft.schedules.plan import Plan
from weft.trackers.follower import Follower
from weft.training.averaging import WeightAverage
from weft.training.checkpoint import Progress
from weft.training.distributed import SOLO, Processes
from weft.training.evaluator import Scoring
from weft.training.listener import TrainListener
from weft.training.loop import Course, Saving, Trainer
from weft.training.resuming import refuse_other_run


def train_run(
    recipe: Recipe,
    out: Path,
    listener: TrainListener,
    *,
    steps: int | None = None,
    device: str = "auto",
    resume: bool = False,
    followers: Sequence[Callable[[Content], None]] = (),
    allow_trackers: Sequence[str] = (),
    trust_code: bool = False,
    processes: Processes = SOLO,
    frames: GivenFrames | None = None,
) -> RunResult | None:
    """Train a recipe into a run folder and return the content of its result.json.

    `followers` are called with every record of the run's log as plain values; an exception from one ends the run.
    `allow_trackers` are the addresses that the recipe may send its log to; `trust_code` allows it to name custom code.
    With several `processes`, each calls this function; only rank 0 writes and gets the result, the others get None.
    `frames` are rows given in Python.
    """
    with processes.agreement():
        made = assemble(recipe, steps=steps, device=device, trust_code=trust_code, processes=processes, frames=frames)
        recipe, network, plan = made.recipe, made.network, made.plan
        content = {name: {"train": task.fed.file.key, "dev": task.dev.file.key} for name, task in made.data.items()}
        settings = {"recipe": recipe.content(), "steps": plan.steps, "data": content, **code_digests(made.code)}
        if made.lessons:
            teachers = [teacher for lesson in made.lessons.values() for teacher in lesson.teachers]
            settings["teachers"] = {str(teacher.folder): teacher.digest for teacher in teachers}
        if resume:
            refuse_other_run(out, settings)
        train = {name: task.fed for name, task in made.data.items()}
        dev = {name: task.dev for name, task in made.data.items()}
        sample = made.train_sample()
        frozen = made.frozen_outputs([made.dev_sample, sample], processes)
        notes = [*made.notes, *frozen.notes, *(lesson.prepare() for lesson in made.lessons.values())]
        wanted = recipe.trackers if processes.leads else ()
        trackers = [config.build(out, recipe.name, recipe.content(), allow_trackers) for config in wanted]
        # nothing is written before this line
        run = RunFolder(out, resume=resume) if processes.leads else Bystander(out)
    tracking = [Follower(tracker, listener.noted) for tracker in trackers]
    run.followers += [*tracking, *followers]
    try:
        run.write_text(run.paths.recipe, recipe_toml(recipe))
        run.write_json(run.paths.environment, environment(made.step.device, processes.count, made.code))
        for note in notes:
            listener.noted(note)

        def save_best(evaluation: Evaluation, rows: Mapping[str, Dataset]) -> None:
            run.replace_folder(run.paths.predictions, lambda to: save_predictions(evaluation, rows, to))
            run.replace_folder(
                run.paths.model, lambda to: save_model(network, made.tokenizer, recipe, evaluation, train, rows, to)
            )

        average = None if recipe.average is None else WeightAverage(network, recipe.average, plan.steps)
        trainer = Trainer(
            made.step,
            Course(plan, made.rates, recipe.modes(), average),
            Scoring(dev, made.dev_sample, sample, made.untrained, recipe.patience, save_best),
            Saving(run, settings, recipe.checkpoint.every_steps),
            listener,
            processes,
            frozen,
        )
        progress = trainer.fit()
        if not processes.leads:
            return None
        _note_early_stop(recipe, progress, plan, listener)
        result = run_result(
            recipe,
            run,
            network,
            seconds=progress.seconds,
            cpu_seconds=progress.cpu_seconds,
            tokens=progress.tokens,
            planned_steps=plan.steps,
        )
        run.write_json(run.paths.result, result)
        write_report([out], run.paths.report)
        return result
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{out}: cannot be written ({error}). Files saved earlier are intact: "
            "free disk space or repair the folder, then continue with --resume"
        ) from None
    finally:
        for follower in tracking:
            follower.close()
        run.close()


def _note_early_stop(recipe: Recipe, progress: Progress, plan: Plan, listener: TrainListener) -> None:
    """Note that early stopping ended the run, and why."""
    if progress.step < plan.steps:
        listener.noted(
            f"stopped early, after step {progress.step:,} of {plan.steps:,}: {progress.waited} evaluations in a row "
            f"did not improve on the one after step {progress.best_step:,} (patience = {recipe.patience})"
        )
