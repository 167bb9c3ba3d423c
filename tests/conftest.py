"""What all tests share: a cache of their own, and a tiny body with data."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.forks import FEW_RESAMPLES

os.environ["OMP_NUM_THREADS"] = "1"  # tests run side by side; tiny tensors gain nothing from threads
os.environ["HF_HUB_OFFLINE"] = "1"  # no test may look for a model on the network
os.environ["TOKENIZERS_PARALLELISM"] = "false"
settings.register_profile("shared", deadline=None)  # machines are shared: no test asserts a time
settings.load_profile("shared")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["WEFT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["HF_MODULES_CACHE"] = str(tmp_path_factory.mktemp("modules"))  # transformers copies models' code there


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with body/ and data/, read only."""
    from tests.tiny import write_all

    return write_all(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that make many runs and look at other things than the intervals in their cards and reports."""
    monkeypatch.setattr("weft.evaluation.bootstrap.ROUNDS", FEW_RESAMPLES)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` uses two workers: the longest tests go first."""
    items.sort(key=lambda item: "integration" not in str(item.path))
