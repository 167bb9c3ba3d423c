"""Runs a study: skips finished runs, records failures and continues with the remaining runs."""

import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from weft.foundation.config import file_name
from weft.foundation.content import Content, differences
from weft.foundation.errors import Interrupted, UserError
from weft.foundation.own_code import trusts_code
from weft.runs.folder import RunFolder, RunPaths
from weft.runs.records import RunEnvironment, read_environment, read_result
from weft.study.executors import StudyExecutor
from weft.study.executors.base import Ended
from weft.study.format import parse_study, study_content, study_toml
from weft.study.outcomes import Outcomes, read_outcome
from weft.study.page import study_page
from weft.study.plan import PlannedArm, StudyPlan, job_recipe
from weft.study.records import StudyResult
from weft.study.result import study_result
from weft.study.reuse import FinishedRun, Identity, finished_runs, read_origin, reuse_run
from weft.study.tables import markdown
from weft.study.worker import StudyJob

Said = Callable[[str], None]
SHOWN, LETTERS = 6, 80
"""Maximum number of differences to another study in an error message, and of characters per value."""


def run_study(
    plan: StudyPlan, out: Path, executor: StudyExecutor, say: Said, reuse: Sequence[Path] = ()
) -> StudyResult:
    """Train the missing runs, decide the claims and write all results to `out`. Returns the content of study.json.

    `reuse` are the folders of other studies whose equal runs are copied instead of trained again.
    """
    _reject_other_study(plan, out)
    reusable = finished_runs(reuse)
    folder = RunFolder(out, resume=True)  # its lock admits one process at a time
    try:
        folder.write_text(out / "study.toml", study_toml(plan.study))
        for name in ("runs", "logs"):
            (out / name).mkdir(exist_ok=True)
        failures = _train_missing(plan, out, executor, say, reusable)
        result = collect(plan, out, failures)
        folder.write_json(out / "study.json", result)
        folder.write_text(out / "study.md", markdown(result))
        folder.write_text(out / "study.html", study_page(result))
        return result
    finally:
        folder.close()


def collect(plan: StudyPlan, out: Path, failures: dict[str, str]) -> StudyResult:
    """Compute the content of study.json from the finished run folders."""
    runs, reused = {}, {}
    environment = RunEnvironment()
    for arm, seed in sorted(plan.runs(), key=lambda run: list(plan.arms).index(run[0].name)):
        paths = RunPaths(run_folder(out, arm, seed))
        if paths.has_ended:
            runs[arm.name, seed] = read_outcome(paths.folder, arm.metrics)
            environment = read_environment(paths.environment)
            if (origin := read_origin(paths)) is not None:
                reused[f"{arm.name}-{seed}"] = str(origin)
    return study_result(plan, Outcomes(runs), failures, environment, reused)


def run_folder(out: Path, arm: PlannedArm, seed: int) -> Path:
    return out / "runs" / f"{file_name(arm.name)}-{seed}"


def _reject_other_study(plan: StudyPlan, out: Path) -> None:
    """Reject a folder of another study: its runs would end up in the same tables."""
    file = out / "study.toml"
    if not file.is_file():
        if out.exists() and (not out.is_dir() or any(path.name != ".lock" for path in out.iterdir())):
            raise UserError(f"{out}: exists and is not a study; choose another folder with -o")
        return
    before = study_content(parse_study(file.read_text(encoding="utf-8"), str(file)))
    # the studies of older versions have no digests of bodies
    before = {"bodies": plan.study.bodies} | before
    found = differences(_compared(before), _compared(study_content(plan.study)))
    changes = [f"{key}: was {_short(old)}, is now {_short(new)}" for key, old, new in found[:SHOWN]]
    changes += [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    if changes:
        raise UserError(
            f"{out}: contains a different study ({'; '.join(changes)}); "
            "resume it with the same settings, or choose another folder with -o"
        )


def _compared(study: Content) -> Content:
    """Return a study's content without the origin of its claims, which decides nothing."""
    claims = [
        {key: value for key, value in claim.items() if key not in ("number", "published_by")}
        for claim in study.get("claims", ())
    ]
    return study | {"claims": claims}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _train_missing(
    plan: StudyPlan, out: Path, executor: StudyExecutor, say: Said, reusable: Sequence[FinishedRun]
) -> dict[str, str]:
    """Reuse or train the missing runs. Returns ARM-SEED -> error of the failed ones."""
    threads = max(1, torch.get_num_threads() // executor.jobs) if executor.jobs > 1 else None
    jobs = [_job(plan, out, arm, seed, threads) for arm, seed in plan.runs()]
    missing = [job for job in jobs if not RunPaths(Path(job.out)).has_ended]
    if reusable:
        files = {job.name: arm.files for job, (arm, _) in zip(jobs, plan.runs(), strict=True)}
        for job in missing:
            reuse_run(Identity.of_job(job, plan.study, files[job.name]), reusable, job, say)
        missing = [job for job in missing if not RunPaths(Path(job.out)).has_ended]
    if len(missing) < len(jobs):
        say(f"{len(jobs) - len(missing)} of {len(jobs)} runs are already finished")
    failures: dict[str, str] = {}
    with stops_like_ctrl_c():
        ends = _run_in_order(plan, missing, executor)
        try:
            for number, ended in enumerate(ends, start=len(jobs) - len(missing) + 1):
                if ended.failure is not None:
                    failures[ended.job.name] = ended.failure
                say(f"[{number}/{len(jobs)}] {_news(ended)}")
        except KeyboardInterrupt:
            ends.close()
            raise Interrupted("stopped; the progress of every run is saved. Repeat the command to resume") from None
    return failures


def _run_in_order(plan: StudyPlan, jobs: Sequence[StudyJob], executor: StudyExecutor) -> Generator[Ended, None, None]:
    """Run the jobs, those of teachers before those of their students. A student without its teachers fails."""
    arms = {f"{arm.name}-{seed}": (arm.name, seed) for arm, seed in plan.runs()}
    failed: set[str] = set()
    for group in plan.study.teaching_order():
        ready = []
        for job in (job for job in jobs if arms[job.name][0] in group):
            name, seed = arms[job.name]
            lost = [f"{teacher}-{seed}" for teacher in plan.study.arms[name].teachers if f"{teacher}-{seed}" in failed]
            if lost:
                failed.add(job.name)
                yield Ended(job, f"its teacher {lost[0]} failed")
            else:
                ready.append(job)
        ends = executor.run(ready)
        try:
            for ended in ends:
                failed |= {ended.job.name} if ended.failure is not None else set()
                yield ended
        finally:
            ends.close()  # type: ignore[attr-defined]  # an executor's `run` is a generator


def _job(plan: StudyPlan, out: Path, arm: PlannedArm, seed: int, threads: int | None) -> StudyJob:
    name = f"{arm.name}-{seed}"
    return StudyJob(
        name=name,
        recipe=job_recipe(plan, arm, seed, lambda teacher, own: run_folder(out, teacher, own)).content(),
        steps=arm.steps,
        out=str(run_folder(out, arm, seed).resolve()),
        log=str((out / "logs" / f"{file_name(name)}.log").resolve()),
        device=plan.device,
        threads=threads,
        trust_code=trusts_code(plan.trust_code),
    )


def _news(ended: Ended) -> str:
    if ended.failure is not None:
        return f"{ended.job.name}: failed: {ended.failure} (full log: {ended.job.log})"
    result = read_result(RunPaths(Path(ended.job.out)).result)
    scores = {task: next(iter(own.values())) for task, own in result.dev.items()}
    shown = "  ".join(f"{task} {'undefined' if value is None else f'{value:.3f}'}" for task, value in scores.items())
    return f"{ended.job.name}: {shown}  ({result.seconds:.0f} s)"


@contextmanager
def stops_like_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that runs save their state before they stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # also where Ctrl-C is ignored
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
