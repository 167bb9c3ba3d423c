"""Reads what a study came to, for people who work in Python."""

from dataclasses import dataclass
from pathlib import Path

from weft.foundation.content import Content, read_json
from weft.foundation.errors import UserError
from weft.foundation.notebook import html_table
from weft.study.tables import claim_line, claim_table, score_table


@dataclass(frozen=True, repr=False)
class StudyResult:
    """study.json of a folder; printed, it is the verdict on every claim."""

    folder: Path
    content: Content
    """all of study.json"""

    @property
    def claims(self) -> list[Content]:
        """each with its text, verdict and figures"""
        return list(self.content["claims"])

    @property
    def arms(self) -> Content:
        """name -> metrics, cost and the rest"""
        return dict(self.content["arms"])

    def __repr__(self) -> str:
        lines = [f"{claim['verdict']}  {claim_line(claim)}" for claim in self.claims]
        return "\n".join([f"StudyResult({self.content['name']}, {len(self.arms)} arms)", *lines])

    def _repr_html_(self) -> str:
        name = str(self.content["name"])
        header, rows = claim_table(self.content)
        claims = html_table(f"{name}: claims", header, rows) if rows else ""
        return html_table(f"{name}: scores, mean and 95 % interval", *score_table(self.content)) + claims


def open_study(folder: str | Path) -> StudyResult:
    """What the study in a folder came to."""
    path = Path(folder) / "study.json"
    if not path.is_file():
        raise UserError(f"{folder}: is not a study (it has no study.json); name a folder that `weft study` made")
    return StudyResult(Path(folder), read_json(path))
