"""What fault tests share: `weft` in forks that can be killed where it is told."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.forks import Forks


class FewResamples(Forks):
    """Faults are about other things than the intervals of a report."""

    def weft(self, *arguments: Any, **faults: Any) -> Any:
        return super().weft(*arguments, resamples=20, **faults)


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    server = FewResamples(tmp_path_factory.mktemp("forks"))
    yield server
    server.close()
