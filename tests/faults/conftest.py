"""What fault tests share: `weft` in forks that can be killed where it is told."""

from collections.abc import Iterator

import pytest

from tests.forks import Forks


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    server = Forks(tmp_path_factory.mktemp("forks"))
    yield server
    server.close()
