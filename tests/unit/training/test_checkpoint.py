from pathlib import Path

import pytest
import torch
from torch import nn

from weft.training.checkpoint import Checkpoints, Progress, settings_of


def trained(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    module = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(module.parameters(), fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        module(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
    return module, optimizer


def checkpoints(folder: Path, seed: int) -> Checkpoints:
    module, optimizer = trained(seed)
    return Checkpoints(folder, module, optimizer, {"recipe": {"name": "x"}})


def state(c: Checkpoints) -> list[torch.Tensor]:
    moments = [t for p in c.module.parameters() for _, t in sorted(c.optimizer.state[p].items())]
    return [t.clone() for t in [*c.module.parameters(), *moments]]


def test_weights_moments_and_progress_come_back(tmp_path: Path) -> None:
    saved = checkpoints(tmp_path, seed=1)
    saved.save(Progress(step=7, best_step=4, best_score=0.5, waited=2, metrics_bytes=99, seconds=1.5, tokens=8))
    other = checkpoints(tmp_path, seed=2)
    progress, warnings = other.load_latest()
    assert progress == Progress(7, 4, 0.5, 2, 99, 1.5, 8)
    assert not warnings
    assert all(torch.equal(a, b) for a, b in zip(state(saved), state(other), strict=True))
    assert settings_of(tmp_path) == {"recipe": {"name": "x"}}


def test_going_on_equals_never_having_stopped(tmp_path: Path) -> None:
    straight = checkpoints(tmp_path, seed=1)
    straight.save(Progress(step=3))
    resumed = checkpoints(tmp_path, seed=2)
    resumed.load_latest()
    for one in (straight, resumed):
        torch.manual_seed(9)
        for _ in range(3):
            one.optimizer.zero_grad()
            one.module(torch.randn(4, 3)).square().sum().backward()
            one.optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(state(straight), state(resumed), strict=True))


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    c = checkpoints(tmp_path, seed=1)
    for step in (2, 9, 10, 1000000):
        c.save(Progress(step=step))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000010", "step-1000000"]


@pytest.mark.parametrize("file", ["weights.safetensors", "optimizer.safetensors", "state.json", "checksums.json"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_one_is_passed_over(tmp_path: Path, file: str, damage: str) -> None:
    c = checkpoints(tmp_path, seed=1)
    c.save(Progress(step=1))
    newest = c.save(Progress(step=2)) / file
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 0x10
    newest.unlink() if damage == "remove" else newest.write_bytes(content if damage == "flip" else content[:-3])
    progress, warnings = c.load_latest()
    assert progress is not None
    assert progress.step == 1
    assert "step-000002" in warnings[0]


def test_leftovers_of_a_crash_are_ignored(tmp_path: Path) -> None:
    (tmp_path / ".step-000005.tmp").mkdir(parents=True)
    c = checkpoints(tmp_path, seed=1)
    assert c.load_latest() == (None, [])
    c.save(Progress(step=5))
    assert [p.name for p in tmp_path.iterdir()] == ["step-000005"]
