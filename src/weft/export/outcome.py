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
"""returns why a target cannot express a task and what to use instead, or None if it can"""
Save = Callable[[ExportSource, str, Path], str]
"""writes a task into a folder and returns what opens it"""


@dataclass(frozen=True)
class Quantization:
    """Dev scores and file sizes before and after quantization."""

    before: Evaluation
    after: Evaluation
    bytes_before: int
    bytes_after: int


@dataclass
class Outcome:
    """The tasks that were written and those that were skipped."""

    written: dict[str, str] = field(default_factory=dict)
    """task or body -> where it is and how to open it"""
    skipped: dict[str, str] = field(default_factory=dict)
    """task -> the reason, and what to use instead"""
    quantization: Quantization | None = None

    def each(self, source: ExportSource, folder: Path, save: Save, refusal: Refusal | None = None) -> None:
        """Write a separate folder for every task that the target can express."""
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
        """Write README.md, which lists the contents of the folder and the skipped tasks."""
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
