"""`--device` becomes a device, or an error that says what there is."""

from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from weft.foundation.devices import choose_device, processor_entry
from weft.foundation.errors import UserError
from weft.training.distributed import join


def test_a_gpu_that_is_named_becomes_the_current_one() -> None:
    with (
        patch("torch.cuda.is_available", return_value=True),
        patch("torch.cuda.device_count", return_value=2),
        patch("torch.cuda.set_device") as select,
    ):
        assert choose_device("auto") == choose_device("cuda") == torch.device("cuda")
        assert not select.called
        assert choose_device("cuda:1") == torch.device("cuda", 1)
        select.assert_called_once_with(torch.device("cuda", 1))
        with pytest.raises(UserError, match="--device cuda:2: torch finds cuda:0 to cuda:1 here; use one of them"):
            choose_device("cuda:2")


def test_without_a_gpu() -> None:
    with patch("torch.cuda.is_available", return_value=False):
        assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
        with pytest.raises(UserError, match="torch finds no CUDA device here; use --device cpu"):
            choose_device("cuda")
    with pytest.raises(UserError, match="expected auto, cpu, cuda or cuda:N"):
        choose_device("mps")


def test_several_processes_share_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="each of several processes uses a GPU of its own"), join("cuda:1"):
        pass


def test_an_entry_of_the_processor(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nvendor_id\t: AuthenticAMD \nmodel name\t: AMD EPYC: 9B14\n\nvendor_id\t: other\n")
    assert processor_entry("vendor_id", file) == "AuthenticAMD"
    assert processor_entry("model name", file) == "AMD EPYC: 9B14"
    assert processor_entry("model", file) is None
    assert processor_entry("model name", tmp_path / "missing") is None
