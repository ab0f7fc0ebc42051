"""Finds providers by name: `ls providers/` is the list, and nothing is registered anywhere.

Looked up in this order: places named in the configuration (folders, packages or single files), so that anyone
can replace a module of ours; this package; installed packages, by the entry point group `hookonce.providers`.
Loading one imports that one only. Names treat `-` and `_` alike; modules whose name starts with `_` are not
senders.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module, util
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final

import providers
from providers.kit.provider import Provider, provider, summary

GROUP: Final = "hookonce.providers"
_NOT_SENDERS: Final = {"kit"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A provider that could be loaded: its name, one line about it, and its file or entry point."""

    name: str
    summary: str
    origin: str


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    origin: str
    load: Callable[[], object]


def names(places: Sequence[str] = ()) -> list[str]:
    """The names of all providers, sorted; none of them is imported.

    Raises: LookupError for a place that does not exist.
    """
    return sorted({found.name for found in _all(places)})


def listing(places: Sequence[str] = ()) -> list[Listed]:
    """All providers by name, each with its summary; read from the files, none of them is imported."""
    first: dict[str, _Found] = {}
    for found in _all(places):
        first.setdefault(found.name, found)
    return [Listed(name, _summary(first[name].origin), first[name].origin) for name in sorted(first)]


def load(name: str, places: Sequence[str] = (), options: Mapping[str, Any] | None = None) -> Provider:
    """The provider called `name`, configured with a source's `options`.

    Raises: LookupError when there is none of that name (with a suggestion);
    ValueError when its module is broken, or `options` are wrong (every mistake at once).
    """
    wanted = _plain(name)
    found = next((found for found in _all(places) if found.name == wanted), None)
    if found is None:
        raise LookupError(_unknown(name, places))
    module = _loaded(found)
    configure = getattr(module, "configure", None)
    if configure is not None:
        made = configure(dict(options or {}))
        return provider(found.name, made, found.origin, getattr(module, "__doc__", None))
    if options:
        given = ", ".join(sorted(options))
        msg = f"provider '{found.name}' takes no options, but was given {given}; remove them"
        raise ValueError(msg)
    return provider(found.name, module, found.origin)


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def _unknown(name: str, places: Sequence[str]) -> str:
    close = get_close_matches(_plain(name), names(places), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"no provider is called {name!r}{hint} `hookonce providers list` shows all"


def _all(places: Sequence[str]) -> Iterator[_Found]:
    for place in places:
        yield from _in_place(place)
    for folder in providers.__path__:
        yield from _in_folder(Path(folder), "providers")
    for point in entry_points(group=GROUP):
        yield _Found(_plain(point.name), f"entry point {point.value}", point.load)


def _in_place(place: str) -> Iterator[_Found]:
    path = Path(place)
    if path.is_dir():
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


def _in_folder(folder: Path, package: str | None) -> Iterator[_Found]:
    """The senders in a folder: modules and packages; imported as part of `package` if it has a name."""
    for module in iter_modules([str(folder)]):
        if module.name.startswith("_") or (package == "providers" and module.name in _NOT_SENDERS):
            continue
        path = folder / module.name / "__init__.py" if module.ispkg else folder / f"{module.name}.py"
        if package is None:
            yield _file(module.name, path)
        else:
            dotted = f"{package}.{module.name}"
            yield _Found(_plain(module.name), str(path), partial(import_module, dotted))


def _file(name: str, path: Path) -> _Found:
    return _Found(_plain(name), str(path), lambda: _import_file(name, path.resolve()))


def _import_file(name: str, path: Path) -> object:
    """Import a module by its file, under a name of its own that can't meet another's."""
    dotted = f"hookonce_place_{abs(hash(path)):x}_{name}"
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


def _loaded(found: _Found) -> object:
    try:
        return found.load()
    except Exception as error:
        msg = f"provider '{found.name}' ({found.origin}) can't be imported: {type(error).__name__}: {error}"
        raise ValueError(msg) from error


def _summary(origin: str) -> str:
    path = Path(origin)
    if not path.is_file():
        return origin
    try:
        return summary(ast.get_docstring(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError):
        return "cannot be read"
