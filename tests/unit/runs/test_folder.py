from dataclasses import replace
from pathlib import Path

import pytest

from weft.foundation.errors import UserError
from weft.runs.folder import RunFolder
from weft.runs.records import ConflictsRecord, read_log

CONFLICTS = ConflictsRecord(step=1, norms={"a": 1.0}, cosines={})


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "run", resume=False)
    with pytest.raises(UserError, match="another process"):
        RunFolder(tmp_path / "run", resume=True)
    first.close()
    RunFolder(tmp_path / "run", resume=True).close()


def test_an_existing_run_needs_resume(tmp_path: Path) -> None:
    RunFolder(tmp_path / "run", resume=False).close()
    with pytest.raises(UserError, match="already exists; continue with --resume"):
        RunFolder(tmp_path / "run", resume=False)


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(UserError, match="is a file"):
        RunFolder(tmp_path / "run", resume=True)


def test_the_log_is_cut_back(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, resume=True)
    run.log(CONFLICTS)
    size = run.metrics_size()
    run.log(replace(CONFLICTS, step=2))
    run.cut_metrics(size)
    run.log(replace(CONFLICTS, step=3))
    assert [record.step for record in read_log(run.paths.metrics)] == [1, 3]
    run.close()


def test_a_folder_is_swapped_whole_and_a_cut_off_swap_is_mended(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, resume=True)
    run.replace_folder(run.paths.model, lambda folder: (folder / "a").write_text("1") and None)
    run.replace_folder(run.paths.model, lambda folder: (folder / "a").write_text("2") and None)
    assert (run.paths.model / "a").read_text() == "2"
    run.close()
    run.paths.model.rename(tmp_path / ".model.old")  # killed between the two renames
    RunFolder(tmp_path, resume=True).close()
    assert (run.paths.model / "a").read_text() == "2"


LINKS = [".lock", "metrics.jsonl", "recipe.toml", "checkpoints", "mlflow.db", "model/weft.json"]


@pytest.mark.parametrize("name", LINKS)
def test_a_symbolic_link_in_a_run_folder_is_rejected(tmp_path: Path, name: str) -> None:
    """A run that somebody sent must not make a resumed run write anywhere else."""
    target, run = tmp_path / "target", tmp_path / "run"
    target.write_text("mine")
    (run / name).parent.mkdir(parents=True)
    (run / name).symlink_to(target)
    with pytest.raises(UserError, match="is a symbolic link to"):
        RunFolder(run, resume=True)
    assert target.read_text() == "mine"


def test_a_link_that_appears_later_is_not_followed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", resume=False)
    for name in ("metrics.jsonl", "recipe.toml"):
        (run.paths.folder / name).symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        run.log(CONFLICTS)
    run.write_text(run.paths.recipe, "x")
    assert not (tmp_path / "target").exists()
    run.close()


def test_half_a_file_of_a_killed_process_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".result.json.0123.tmp").write_text("{")
    RunFolder(tmp_path, resume=True).close()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
