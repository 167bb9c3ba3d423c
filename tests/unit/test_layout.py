"""Unit tests mirror the source: every folder of tests/unit stands for a room."""

from pathlib import Path

import weft

SOURCE = Path(weft.__file__).parent
UNIT = Path(__file__).parent


def test_every_folder_of_unit_tests_is_a_room() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    folders = {path.name for path in UNIT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= rooms
