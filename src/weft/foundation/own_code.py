"""Custom code that a recipe or a model names by its address, `module:Class`: imported only if the user trusts it."""

import difflib
import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from weft.foundation.atomic import sha256

TRUST_VARIABLE = "WEFT_TRUST_CODE"
ADDRESS = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"

_READ: dict[str, str] = {}
"""File -> its digest at import. Python does not reload a changed file."""


def trusts_code(asked: bool) -> bool:
    """Whether the user trusts code that a file names: by this call's flag, or by the environment for all calls."""
    return asked or os.environ.get(TRUST_VARIABLE) == "1"


def names_code(content: Any) -> bool:
    """Whether plain content (nested tables) names a component by `use`."""
    if isinstance(content, dict):
        address = content.get("use")
        named = isinstance(address, str) and re.fullmatch(ADDRESS, address) is not None
        return named or any(map(names_code, content.values()))
    return isinstance(content, list | tuple) and any(map(names_code, content))


@dataclass(frozen=True)
class SourceFile:
    """The file that defines an imported class. Files that it imports are not recorded."""

    file: str
    sha256: str
    version: str | None
    """Version of the installed package that contains the file, or the module's `__version__`."""


def code_digests(sources: Mapping[str, SourceFile]) -> dict[str, dict[str, str]]:
    """Digests that must be equal when a run is resumed: `{"code": {address: sha256}}`; empty without custom code."""
    digests = {address: source.sha256 for address, source in sources.items()}
    return {"code": digests} if digests else {}


class Importer:
    """Imports the custom components of one recipe and records their source files."""

    def __init__(self, trust: bool, folder: Path | None) -> None:
        """`folder` is searched after Python's path, so that no file in it shadows an installed module."""
        self.trust = trust
        self.folder = folder
        self.classes: dict[str, Any] = {}
        """Address -> imported object."""
        self.sources: dict[str, SourceFile] = {}
        """Address -> source file."""

    def find(self, address: str) -> Any:
        """Import the object at an address; raises ValueError if it is not trusted or does not exist."""
        if not self.trust:
            raise ValueError(
                f"found {address!r}: code that weft imports only if you trust it. Read the module "
                f"{address.partition(':')[0]!r}, then pass --trust-code (trust_code=True in Python; "
                f"{TRUST_VARIABLE}=1 in the environment)"
            )
        if address not in self.classes:
            name, _, attribute = address.partition(":")
            with self._on_path():
                self._require_unshadowed(name.partition(".")[0])
                module = self._module(name)
            if not hasattr(module, attribute):
                near = difflib.get_close_matches(attribute, vars(module), n=1)
                hint = f"; did you mean '{name}:{near[0]}'?" if near else ""
                raise ValueError(f"found {address!r}, but {module.__name__} ({_file(module)}) has no {attribute}{hint}")
            self.classes[address] = found = getattr(module, attribute)
            if source := _source(sys.modules.get(getattr(found, "__module__", name), module)):
                self.sources[address] = source
        return self.classes[address]

    def _module(self, name: str) -> ModuleType:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise ValueError(f"the module {name!r} needs {error.name!r}, which is not installed") from None
            searched = f" or in {self.folder}" if self.folder else ""
            raise ValueError(
                f"there is no module {name!r} on Python's path{searched}; install it, put it into the recipe's folder, "
                "or add its folder to PYTHONPATH"
            ) from None
        except Exception as error:  # third-party code may raise anything at import
            raise ValueError(f"the module {name!r} cannot be imported ({type(error).__name__}: {error})") from None

    @contextmanager
    def _on_path(self) -> Iterator[None]:
        """Add the folder to Python's path during the import only."""
        entry = None if self.folder is None or not self.folder.is_dir() else str(self.folder)
        if entry is None:
            yield
            return
        sys.path.append(entry)
        try:
            yield
        finally:
            sys.path.remove(entry)

    def _require_unshadowed(self, top: str) -> None:
        """Reject a second module of the same name: Python imports a name once and would silently skip the file."""
        known, spec = sys.modules.get(top), PathFinder.find_spec(top)
        if known is None or spec is None or spec.origin is None or self.folder not in Path(spec.origin).parents:
            return
        if _file(known) != spec.origin:
            raise ValueError(
                f"{spec.origin} cannot be imported, because another module {top!r} is already imported "
                f"({_file(known)}); rename one of them"
            )


def _source(module: ModuleType) -> SourceFile | None:
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    digest = sha256(Path(file))
    if _READ.setdefault(file, digest) != digest:
        raise ValueError(f"{file} has changed since this process imported it; start a new process")
    distributions = _distributions().get(module.__name__.partition(".")[0])
    version = metadata.version(distributions[0]) if distributions else getattr(module, "__version__", None)
    return SourceFile(file, digest, None if version is None else str(version))


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Top-level module -> installed packages that provide it. Cached, because the scan takes a second."""
    return metadata.packages_distributions()


def _file(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or "built in"
