"""Finds providers by name: the folder of senders is the list, and nothing is registered anywhere.

Looked up in this order: places named in the configuration (folders, packages or single files), so that anyone
can replace a module of ours; this package; installed packages, by the entry point group hookonce.providers.
Loading one imports that one only. Names treat dash and underscore alike; modules whose name starts with an underscore
are not senders.

`discovery`: where modules lie, found without importing one
`options`: checks what a source sets, all of it at once
`declared_options`: options that say what a module would declare
`key_pair_options`: the same of senders with a key pair
`challenge_option`: the option that answers probes
`chosen_ids`: ids and accounts where the operator wants them
`message_ids`: ids that a broker gives
`token_sender`: senders that bring a token where their user wants it
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hookonce.providers.kit.provider import Provider, provider, summary
from hookonce.providers.kit.registry.discovery import Found, everywhere, plain


@dataclass(frozen=True, slots=True)
class Listed:
    """A provider that could be loaded: its name, one line about it, and its file or entry point."""

    name: str
    summary: str
    origin: str


def names(places: Sequence[str] = ()) -> list[str]:
    """Return the names of all providers, sorted; none of them is imported.

    Raises: LookupError for a place that does not exist.
    """
    return sorted({found.name for found in everywhere(places)})


def listing(places: Sequence[str] = ()) -> list[Listed]:
    """Return all providers by name, each with its summary; read from the files, none of them is imported."""
    first: dict[str, Found] = {}
    for found in everywhere(places):
        first.setdefault(found.name, found)
    return [Listed(name, _summary(first[name].origin), first[name].origin) for name in sorted(first)]


def load(name: str, places: Sequence[str] = (), options: Mapping[str, Any] | None = None) -> Provider:
    """Return the provider called `name`, configured with a source's `options`.

    Raises: LookupError when there is none of that name (with a suggestion);
    ValueError when its module is broken, or `options` are wrong (every mistake at once).
    """
    wanted = plain(name)
    found = next((found for found in everywhere(places) if found.name == wanted), None)
    if found is None:
        raise LookupError(_unknown(name, places))
    module = _loaded(found)
    configure = getattr(module, "configure", None)
    if configure is not None:
        made = configure(dict(options or {}))
        return provider(found.name, made, found.origin, module)
    if options:
        given = ", ".join(sorted(options))
        msg = f"provider '{found.name}' takes no options, but was given {given}; remove them"
        raise ValueError(msg)
    return provider(found.name, module, found.origin)


def _unknown(name: str, places: Sequence[str]) -> str:
    close = get_close_matches(plain(name), names(places), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"no provider is called {name!r}{hint} `hookonce providers list` shows all"


def _loaded(found: Found) -> object:
    try:
        return found.load()
    except (Exception, SystemExit) as error:
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
