"""Runs the jobs of a study one after the other in this very process: fast, where processes are not the point."""

from collections.abc import Iterator, Sequence

from weft.evaluation import bootstrap
from weft.study.executors.base import Ended, StudyExecutor
from weft.study.worker import StudyJob, last_words, run_job


class Here(StudyExecutor):
    def run(self, jobs: Sequence[StudyJob]) -> Iterator[Ended]:
        for job in jobs:
            before, bootstrap.ROUNDS = bootstrap.ROUNDS, 20  # the runs' own pages need no fine intervals
            try:
                code = run_job(job)
            finally:
                bootstrap.ROUNDS = before
            yield Ended(job, last_words(job) if code else None)
