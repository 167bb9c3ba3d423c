"""Reuses finished runs of other studies: equal runs would give equal results, so none is trained twice.

A run is reused only if nothing that determines its weights and scores differs: the recipe with its seed (the name
aside), the steps, the content of data, code and body, and the environment. Training with teachers is never reused,
because a study does not record the teachers' content.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from weft.foundation.atomic import new_folder, write_whole
from weft.foundation.content import Content, differences, parse_toml, read_json
from weft.foundation.devices import choose_device
from weft.foundation.errors import UserError
from weft.foundation.records import JsonRecord, from_json, to_json
from weft.recipes.recipe import parse_recipe
from weft.runs.environment import environment
from weft.runs.folder import RunPaths
from weft.runs.records import RunEnvironment, read_environment, read_result
from weft.study.format import Study, parse_study
from weft.study.worker import StudyJob


@dataclass(frozen=True, kw_only=True)
class ReusedRun(JsonRecord):
    """reused.json in a run folder: the run that the folder is a copy of."""

    study: str
    """Study that trained the run."""
    run: str
    """Its folder among the runs of that study."""

    def __str__(self) -> str:
        return f"{self.study}/{self.run}"


@dataclass(frozen=True)
class Identity:
    """What determines the weights and scores of a run."""

    recipe: Content
    """The resolved recipe with its seed, without its name."""
    steps: int
    files: dict[str, str]
    """Data and code file -> SHA-256 digest."""
    body: str | None
    """Digest of the body; None if the study did not record it."""
    environment: RunEnvironment

    @staticmethod
    def of_job(job: StudyJob, study: Study, files: dict[str, str]) -> "Identity":
        """Identify a run that is to be trained here."""
        here = environment(choose_device(job.device), 1, {})
        here = here if job.threads is None else replace(here, threads=job.threads)
        return Identity(_nameless(job.recipe), job.steps, files, study.bodies[job.recipe["body"]], here)


@dataclass(frozen=True)
class FinishedRun:
    """A finished run of another study."""

    paths: RunPaths
    study: Study
    recipe: Content
    """The resolved recipe, without its name."""

    def identity(self, files: Sequence[str]) -> Identity:
        """Identify the run, by the digests that its study recorded of `files`."""
        data = self.study.data
        return Identity(
            self.recipe,
            read_result(self.paths.result).steps,
            {file: data[file] for file in files if file in data},
            self.study.bodies.get(self.recipe["body"]),
            replace(read_environment(self.paths.environment), code={}),  # `files` has the digests of code
        )

    def copy_to(self, out: Path) -> ReusedRun:
        """Copy the run folder, with a record of its origin. A copy of a copy keeps the first origin."""
        origin = read_origin(self.paths) or ReusedRun(study=self.study.name, run=self.paths.folder.name)
        if out.exists():
            shutil.rmtree(out)  # left by an interrupted run, which has not ended
        with new_folder(out) as temporary:
            left_out = shutil.ignore_patterns(self.paths.checkpoints.name, ".*")
            shutil.copytree(self.paths.folder, temporary, ignore=left_out, dirs_exist_ok=True)
            write_whole(RunPaths(temporary).reused, to_json(origin, indent=2) + "\n")
        return origin


def finished_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """Find the finished runs of the studies in `folders`. Raises UserError for a folder without a study."""
    return [run for folder in folders for run in _finished_in(folder)]


def _finished_in(folder: Path) -> Iterator[FinishedRun]:
    file = folder / "study.toml"
    if not file.is_file():
        raise UserError(f"--reuse {folder}: is not the folder of a study (it has no study.toml)")
    study = parse_study(file.read_text(encoding="utf-8"), str(file))
    for run in sorted((folder / "runs").glob("*")):
        paths = RunPaths(run)
        if paths.has_ended:
            where = str(paths.recipe)
            recipe = parse_recipe(parse_toml(paths.recipe.read_text(encoding="utf-8"), where), where)
            yield FinishedRun(paths, study, _nameless(recipe.content()))


def reuse_run(wanted: Identity, candidates: Sequence[FinishedRun], job: StudyJob, say: Callable[[str], None]) -> bool:
    """Copy an equal run to the folder of `job`, if there is one. Says why a run of the same recipe is not equal."""
    reasons = []
    for run in candidates:
        if run.recipe != wanted.recipe or "distill" in wanted.recipe:
            continue
        found = differences(asdict(run.identity(list(wanted.files))), asdict(wanted))
        if not found:
            say(f"{job.name}: reused from {run.copy_to(Path(job.out))}")
            return True
        key, old, new = found[0]
        why = f"{key} was {old!r}, is now {new!r}" if old is not None else f"its study did not record {key}"
        reasons.append(f"{run.study.name}/{run.paths.folder.name}: {why}")
    if reasons:
        say(f"{job.name}: not reused from {'; '.join(reasons)}")
    return False


def read_origin(paths: RunPaths) -> ReusedRun | None:
    """Return the origin of a reused run, None for a run that this study trained."""
    return from_json(ReusedRun, read_json(paths.reused), str(paths.reused)) if paths.reused.is_file() else None


def _nameless(recipe: Content) -> Content:
    return {key: value for key, value in recipe.items() if key != "name"}
