"""Discovery of provider modules in folders, files, packages and installed entry points, without importing one.

A folder that is not a package of ours is imported file by file, each under a name of its own, so that two
places can have modules of the same name.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from importlib import import_module, util
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

from hookonce import providers

GROUP: Final = "hookonce.providers"
"""The entry point group of installed packages; each point names a module (or an object) that is a provider."""
_PACKAGE: Final = providers.__name__
_NOT_SENDERS: Final = {"kit"}


@dataclass(frozen=True, slots=True)
class Found:
    """A provider that could be loaded: `load` imports its module; `origin` is its file or entry point."""

    name: str
    origin: str
    load: Callable[[], object]


def plain(name: str) -> str:
    """Return the one spelling of a provider's name."""
    return name.replace("-", "_").lower()


def everywhere(places: Sequence[str]) -> Iterator[Found]:
    """Return every provider there is, those of `places` first; a name may come more than once, the first one counts.

    Raises: LookupError for a place that does not exist.
    """
    for place in places:
        yield from _in_place(place)
    for folder in providers.__path__:
        yield from _ours(folder, Path(folder).stat().st_mtime_ns)
    for point in entry_points(group=GROUP):
        yield Found(plain(point.name), f"entry point {point.value}", point.load)


def _in_place(place: str) -> Iterator[Found]:
    path = Path(place)
    if place and path.is_dir():
        yield from _in_folder(path, None)
    elif path.is_file():
        yield _file(path.stem, path)
    else:
        yield from _in_folder(_package(place), place)


def _package(place: str) -> Path:
    try:
        spec = util.find_spec(place)
    except (ImportError, ValueError):
        spec = None
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        msg = f"no folder, file or package of providers is at {place!r}; correct it in [receiver] providers"
        raise LookupError(msg)
    return Path(next(iter(folders)))


@lru_cache(maxsize=8)
def _ours(folder: str, changed: int) -> tuple[Found, ...]:
    """Return our senders, listed once for each state of their folder: a configuration loads dozens of them."""
    del changed
    return tuple(_in_folder(Path(folder), _PACKAGE))


def _in_folder(folder: Path, package: str | None) -> Iterator[Found]:
    """Return the senders in a folder: modules and packages; imported as part of `package` if it has a name."""
    whole = folder.absolute()  # of a relative path Python keeps what it has seen first
    for module in iter_modules([str(whole)]):
        if module.name.startswith("_") or (package == _PACKAGE and module.name in _NOT_SENDERS):
            continue
        path = folder / module.name / "__init__.py" if module.ispkg else folder / f"{module.name}.py"
        if package is None:
            yield _file(module.name, path)
        else:
            dotted = f"{package}.{module.name}"
            yield Found(plain(module.name), str(path), partial(import_module, dotted))


def _file(name: str, path: Path) -> Found:
    return Found(plain(name), str(path), lambda: _import_file(name, path.resolve()))


def _import_file(name: str, path: Path) -> object:
    """Import a module by its file, under a name of its own that can't meet another's."""
    dotted = f"hookonce_place_{sha256(str(path).encode()).hexdigest()[:12]}_{name}"
    if dotted in sys.modules:
        return sys.modules[dotted]
    spec = util.spec_from_file_location(dotted, path)
    if spec is None or spec.loader is None:
        msg = f"{path} is not a Python module"
        raise ImportError(msg)
    module = util.module_from_spec(spec)
    sys.modules[dotted] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[dotted]
        raise
    return module
