"""The interface of executors, which run the jobs of a study."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.study.worker import StudyJob


@dataclass(frozen=True)
class Ended:
    """A job that has ended."""

    job: StudyJob
    failure: str | None
    """Why the job failed; None if it succeeded."""


class StudyExecutor(ABC):
    """Runs `worker.run_job` for every job, each in a separate process."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        """Number of jobs that run at the same time."""

    @abstractmethod
    def run(self, jobs: Sequence[StudyJob]) -> Iterator[Ended]:
        """Yield every job as it ends, in any order. A job that crashes or is killed ends with a failure.

        Closing the generator stops the running jobs, which can resume from their last checkpoint.
        """
