"""The result of an export."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from weft.evaluation.scoring import Evaluation
from weft.export.source import ExportSource
from weft.foundation.config import file_name
from weft.foundation.errors import UserError
from weft.foundation.sanitize import for_markdown

Refusal = Callable[[ExportSource, str], str | None]
"""why a target cannot express a task, and the way that works; None if it can"""
Save = Callable[[ExportSource, str, Path], str]
"""writes a task into a folder, and says what opens it"""


@dataclass(frozen=True)
class Quantization:
    """Every dev score before and after."""

    before: Evaluation
    after: Evaluation
    bytes_before: int
    bytes_after: int


@dataclass
class Outcome:
    """Which tasks were written and which were not."""

    written: dict[str, str] = field(default_factory=dict)
    """what -> where it is and how it is opened"""
    skipped: dict[str, str] = field(default_factory=dict)
    """task -> why, and the way that works"""
    quantization: Quantization | None = None

    def each(self, source: ExportSource, folder: Path, save: Save, refusal: Refusal | None = None) -> None:
        """A folder of its own for every task that the target can express."""
        for task in source.tasks:
            reason = refusal(source, task) if refusal else None
            if reason is not None:
                self.skipped[task] = reason
                continue
            own = folder / file_name(task)
            own.mkdir()
            how = save(source, task, own)
            remark = source.remark(task)
            self.written[task] = f"{own.name}/: {how}; {remark}" if remark else f"{own.name}/: {how}"

    def require_one(self, to: str) -> None:
        if not self.written:
            reasons = "\n".join(f"  {task}: {reason}" for task, reason in self.skipped.items())
            raise UserError(f"--to {to}: none of the tasks can be written\n{reasons}")

    def save_card(self, source: ExportSource, to: str, folder: Path) -> None:
        """README.md: what is in the folder, and what is not."""
        lines = [f"# {for_markdown(source.model.config.name)}", "", f"Exported by weft for {to}.", ""]
        lines += [
            "| what | where |",
            "| --- | --- |",
            *(f"| {what} | {where} |" for what, where in self.written.items()),
        ]
        if self.quantization is not None:
            before, after = self.quantization.before.overall, self.quantization.after.overall
            lines += ["", f"Weights are int8: the overall dev score was {before:.3f} and is {after:.3f}."]
        if self.skipped:
            lines += ["", "Not written:", ""]
            lines += [f"- {task}: {reason}" for task, reason in self.skipped.items()]
        (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
