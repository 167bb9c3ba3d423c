"""Read the result of a study in Python."""

from dataclasses import dataclass
from pathlib import Path

from weft.foundation.content import read_json
from weft.foundation.errors import UserError
from weft.foundation.notebook import html_table
from weft.foundation.records import from_json
from weft.study.records import StudyResult
from weft.study.tables import claim_line, claim_table, score_table


@dataclass(frozen=True, repr=False)
class StudyFolder:
    """Result folder of `weft study`. Its repr shows the verdict on every claim."""

    folder: Path
    result: StudyResult
    """contents of study.json, including claims, arms and differences"""

    def __repr__(self) -> str:
        lines = [f"{claim.verdict}  {claim_line(claim)}" for claim in self.result.claims]
        return "\n".join([f"Study {self.result.name}: {len(self.result.arms)} arms", *lines])

    def _repr_html_(self) -> str:
        name = self.result.name
        header, rows = claim_table(self.result)
        claims = html_table(f"{name}: claims", header, rows) if rows else ""
        return html_table(f"{name}: scores, mean and 95 % interval", *score_table(self.result)) + claims


def open_study(folder: str | Path) -> StudyFolder:
    """Read the study in a folder. Raise UserError if the folder has no study.json."""
    path = Path(folder) / "study.json"
    if not path.is_file():
        raise UserError(f"{folder}: is not a study (it has no study.json); name a folder that `weft study` made")
    return StudyFolder(Path(folder), from_json(StudyResult, read_json(path), str(path)))
