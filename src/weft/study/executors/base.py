"""Who runs the jobs of a study."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.study.worker import StudyJob


@dataclass(frozen=True)
class Ended:
    """How a job went."""

    job: StudyJob
    failure: str | None
    """why it did not come to its end"""


class StudyExecutor(ABC):
    """Runs `worker.run_job` for every job, each in a process of its own."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        """how many run at a time"""

    @abstractmethod
    def run(self, jobs: Sequence[StudyJob]) -> Iterator[Ended]:
        """Every job as it ends, in any order. A job that dies, however it does, is one that ended with a failure.

        A caller that stops asking stops the jobs under way, which go on from their last checkpoint another time.
        """
