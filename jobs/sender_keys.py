"""Keys of senders' APIs, which only the sweep has: no other process of ours has their variables in its environment."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import suppress

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.secret_references import Reference
from hookonce.receiver.config.servers import read_toml

HIDDEN = "HOOKONCE_HIDDEN_KEYS"
"""The descriptor of the file in which a supervisor keeps the keys for its sweep."""


def withdraw(environ: MutableMapping[str, str] | None = None) -> dict[str, str]:
    """Take the variables of sources' keys out of an environment, and return them; `hide` hides none from here on.

    Only the file's text is read: nothing of the user's is imported. What is wrong with it another reader says.
    """
    environ = os.environ if environ is None else environ
    if hidden := environ.pop(HIDDEN, ""):
        with suppress(OSError):
            os.close(int(hidden))
    named = {each.place for each in _references(environ) if each.kind == "env"}
    return {name: environ.pop(name) for name in named & environ.keys()}


def hide() -> None:
    """Begin this program again with the keys in neither its environment nor its memory, which forks would share.

    They are in a file without a name, whose descriptor all but the sweep close (`withdraw`).
    """
    is_hidden = HIDDEN in os.environ
    keys = {} if is_hidden else withdraw()
    if keys:
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(keys).encode())
            file.flush()
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003  a name of Python's
            os.execve(sys.executable, sys.orig_argv, {**os.environ, HIDDEN: str(file.fileno())})  # noqa: S606  itself


def restore() -> None:
    """Have the keys that were hidden in the environment; what `.env` says now wins."""
    if hidden := os.environ.pop(HIDDEN, ""):
        descriptor = int(hidden)
        for name, value in json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0)).items():
            os.environ.setdefault(name, value)


def _references(environ: MutableMapping[str, str]) -> Iterator[Reference]:
    tables: object = None
    with suppress(ConfigError):
        tables = read_toml(environ).get("sources")
    for each in tables.values() if isinstance(tables, dict) else ():
        key = each.get("api_key") if isinstance(each, dict) else None
        if isinstance(key, str) and (reference := Reference.parse(key)):
            yield reference
