"""Parts that content names by `use`: data until somebody who trusts them has them imported."""

import sys
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from weft.foundation.components import Component, Exchangeable, Unimported, require_made
from weft.foundation.config import Config, parse
from weft.foundation.errors import UserError
from weft.foundation.own_code import Importer, names_code, trusts_code

OWN = """
from typing import Literal
from pydantic import Field
from tests.unit.foundation.test_components import PartOptions

__version__ = "3"
number = 5


class Inner(PartOptions):
    name: Literal["inner"] = "inner"
    depth: int = 1
    def build(self): return "inner"


class Mine(PartOptions):
    name: Literal["mine"] = "mine"
    gamma: float = Field(default=2.0, ge=0)
    inner: Inner | None = None
    def build(self): return "mine"


class Unbuilt(PartOptions):
    name: Literal["unbuilt"] = "unbuilt"


class Nameless(PartOptions):
    def build(self): return 1


class Namesake(PartOptions):
    name: Literal["one"] = "one"
    def build(self): return 1
"""


class PartOptions(Component):
    @abstractmethod
    def build(self) -> object: ...


class OneConfig(PartOptions):
    name: Literal["one"] = "one"
    size: int = 1

    def build(self) -> object:
        return 1


class TwoConfig(PartOptions):
    name: Literal["two"] = "two"

    def build(self) -> object:
        return 2


PartConfig = Annotated[OneConfig | TwoConfig, Field(discriminator="name"), Exchangeable(PartOptions)]


class Root(Config):
    part: PartConfig = OneConfig()
    perhaps: PartConfig | None = None
    several: tuple[PartConfig, ...] = ()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """With a module `own_part`, which no other test has imported."""
    (tmp_path / "own_part.py").write_text(OWN, encoding="utf-8")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def test_reading_imports_nothing_and_writes_back(folder: Path) -> None:
    content = {"part": {"use": "own_part:Mine", "gamma": 1.0}, "perhaps": "two", "several": [{"use": "own_part:Mine"}]}
    root = parse(Root, content, "file")
    assert isinstance(root.part, Unimported)
    assert root.model_dump(mode="json", exclude_none=True) == content | {"perhaps": {"name": "two"}}
    assert "own_part" not in sys.modules
    assert names_code(content)


def test_an_importer_makes_and_validates_the_parts(folder: Path) -> None:
    importer = Importer(True, folder)
    path = list(sys.path)
    content = {"part": {"use": "own_part:Mine", "gamma": 1.0}, "several": ["two", {"use": "own_part:Mine"}]}
    root = parse(Root, content, "file", importer)
    assert root.part.build() == "mine"
    assert [part.build() for part in root.several] == [2, "mine"]
    assert sys.path == path
    written = root.model_dump(mode="json", exclude_none=True)
    assert written["part"] == {"use": "own_part:Mine", "name": "mine", "gamma": 1.0}
    assert parse(Root, written, "file", importer) == root
    assert root.part != root.several[1]
    source = importer.sources["own_part:Mine"]
    assert (source.file, source.version, len(source.sha256)) == (str(folder / "own_part.py"), "3", 64)


def test_untrusted_code_is_not_imported(folder: Path) -> None:
    with pytest.raises(UserError, match=r"^file: part: found 'own_part:Mine': code .* --trust-code"):
        parse(Root, {"part": {"use": "own_part:Mine"}}, "file", Importer(False, folder))
    assert "own_part" not in sys.modules


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"use": "own_part:Mine", "gama": 1}, "part.gama: there is no such key; did you mean 'gamma'?"),
        ({"use": "own_part:Mine", "gamma": -1}, "part.gamma: found -1, input should be greater than or equal to 0"),
        (
            {"use": "own_part:Mine", "inner": {"dept": 1}},
            "part.inner.dept: there is no such key; did you mean 'depth'?",
        ),
        ({"use": "own_part:Mine", "name": "one"}, "part.name: found 'one', input should be 'mine'"),
        ({"use": "own_part:Min"}, "has no Min; did you mean 'own_part:Mine'?"),
        ({"use": "own_part:number"}, "part: 'own_part:number' is a int; expected a config class, a subclass of"),
        ({"use": "own_part:Field"}, "is a function; expected a config class"),
        ({"use": "pathlib:Path"}, "is a class of another kind; expected a config class"),
        ({"use": "own_part:Unbuilt"}, "part: 'own_part:Unbuilt' does not define build; see"),
        ({"use": "own_part:Nameless"}, "has no name; expected a field such as name"),
        ({"use": "own_part:Namesake"}, "has the name 'one' of a shipped component"),
        ({"use": "no_such_module:Mine"}, "there is no module 'no_such_module' on Python's path or in "),
        ({"use": "own_broken:Mine"}, "the module 'own_broken' cannot be imported (ZeroDivisionError: "),
        ({"use": "own_invalid:Mine"}, "the module 'own_invalid' cannot be imported (ValueError: "),
        ({"use": "own_lacking:Mine"}, "the module 'own_lacking' needs 'no_such_library', which is not installed"),
        ({"use": "own_part"}, "part.use: found 'own_part', expected an address module:Class, such as"),
        ({"use": "../evil:Mine"}, "part.use: found '../evil:Mine', expected an address"),
        ({"use": 3}, "part.use: found 3, input should be a valid string"),
        ({"use": ["a"]}, "part.use: found ['a'], input should be a valid string"),
    ],
)
def test_messages(folder: Path, part: Any, message: str) -> None:
    (folder / "own_broken.py").write_text("1 / 0", encoding="utf-8")
    (folder / "own_invalid.py").write_text("int('x')", encoding="utf-8")
    (folder / "own_lacking.py").write_text("import no_such_library", encoding="utf-8")
    with pytest.raises(UserError) as raised:
        parse(Root, {"part": part}, "file", Importer(True, folder))
    assert message in str(raised.value)


def test_an_installed_module_is_not_hidden_by_a_file(folder: Path) -> None:
    (folder / "pathlib.py").write_text("1 / 0", encoding="utf-8")
    assert Importer(True, folder).find("pathlib:Path") is Path


def test_two_files_of_one_name_are_told_apart(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    Importer(True, folder).find("own_part:Mine")
    other = tmp_path_factory.mktemp("other")
    (other / "own_part.py").write_text(OWN, encoding="utf-8")
    with pytest.raises(ValueError, match="another module 'own_part' is already imported"):
        Importer(True, other).find("own_part:Mine")


def test_a_file_that_changed_after_it_was_imported_is_rejected(folder: Path) -> None:
    """Python would go on with the old code."""
    Importer(True, folder).find("own_part:Mine")
    (folder / "own_part.py").write_text(OWN + "\n# changed", encoding="utf-8")
    with pytest.raises(ValueError, match="has changed since this process imported it"):
        Importer(True, folder).find("own_part:Mine")


def test_what_a_part_builds_must_fit_its_room() -> None:
    part = OneConfig().used_as("own:One")
    require_made(part, 1, int, "part")
    require_made(OneConfig(), "shipped parts are ours", int, "part")
    with pytest.raises(UserError, match=r"^part: 'own:One' built a str; expected a subclass of builtins.int"):
        require_made(part, "text", int, "part")


@pytest.mark.parametrize(("value", "trusted"), [("1", True), ("0", False), ("", False)])
def test_trust_by_the_environment(monkeypatch: pytest.MonkeyPatch, value: str, trusted: bool) -> None:
    monkeypatch.setenv("WEFT_TRUST_CODE", value)
    assert trusts_code(False) == trusted
    assert trusts_code(True)


@pytest.mark.parametrize("content", [{"use": {"head": "linear"}}, {"label": "use"}, {"use": "plain"}, ["a:b"]])
def test_what_names_no_code(content: Any) -> None:
    assert not names_code(content)
