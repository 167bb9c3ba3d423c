"""The rows of a source, as schedules draw them and tasks ask about them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from weft.foundation.values import Part, Rows


@dataclass(frozen=True)
class SourceRows:
    """Rows that one or several tasks ask about. A schedule draws rows of a source, never rows of one of its tasks."""

    places: Mapping[str, Rows]
    """task -> [n] number of each row in the task's train set; -1 where its label is blank, so that it does not ask"""

    def __len__(self) -> int:
        return len(next(iter(self.places.values())))

    @property
    def name(self) -> str:
        """the names of its tasks: the task's own name if there is one task"""
        return "+".join(self.places)

    @property
    def asked(self) -> dict[str, int]:
        """number of rows that each task asks about"""
        return {task: int((place >= 0).sum()) for task, place in self.places.items()}

    def only(self, tasks: Collection[str]) -> "SourceRows | None":
        """Return the rows that some of the tasks ask about; None if the source has none of these tasks."""
        chosen = {task: place for task, place in self.places.items() if task in tasks}
        if not chosen:
            return None
        wanted = np.stack(list(chosen.values())).max(axis=0) >= 0
        return SourceRows({task: place[wanted] for task, place in chosen.items()})

    def parts(self, micro: int, rows: Rows) -> list[Part]:
        """Return a part for each task that asks about any of these rows of the source."""
        parts = []
        for task, place in self.places.items():
            drawn = np.flatnonzero(place[rows] >= 0)
            if len(drawn):
                parts.append(Part(task, micro, place[rows[drawn]], self.name, drawn))
        return parts


def separate(sizes: Mapping[str, int]) -> list[SourceRows]:
    """Return the sources of tasks that share no rows, from the size of each task's train set."""
    return [SourceRows({task: np.arange(rows)}) for task, rows in sizes.items()]
