"""Questions of a source to its sender's API (the list of what it sent, subscriptions), and the key for them.

The key is never resolved with the settings: the one process that calls looks it up. `withdraw` takes its variable out
of the environment of all others.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from datetime import timedelta

from hookonce.providers.kit.provider import Provider
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.secret_references import Reference
from hookonce.receiver.config.servers import read_toml
from hookonce.receiver.source import Source

SHORTEST = timedelta(minutes=10)
HIDDEN = "HOOKONCE_HIDDEN_KEYS"
"""The descriptor of the file in which a supervisor keeps the keys for its sweep."""


def sender_api_mistakes(table: Source, provider: Provider) -> Iterator[str]:
    """Yield what is wrong with the questions of a source to its sender."""
    listing, renewal, is_listed = provider.listing, provider.renewal, table.reconcile or table.api
    if Reference.parse(table.api_key) is None:
        yield 'needs api_key where it asks its sender; write api_key = "env:NAME" or "file:/path"'
    if is_listed and listing is None:
        yield f"has reconcile or api, and {provider.name} is not asked for what it sent; remove them"
    if table.renew and renewal is None:
        yield f"has renew, and {provider.name} has no subscriptions that are renewed; remove it"
    if table.reconcile and table.reconcile < SHORTEST:
        yield "reconcile is shorter than 10m; expected that or longer"
    if listing and is_listed and not re.fullmatch(listing.api, table.api):
        expected = f"expected {listing.api}" if listing.api else "remove it"
        yield f"api is not an address of {provider.name}'s list; {expected}"
    if listing and listing.redeliver and table.id and table.reconcile:
        yield "has reconcile and id, but its sender's list has its own ids only; remove one of them"
    if table.renew and not (table.url_reference or table.public_url).startswith("https://"):
        yield "has renew and no https URL for its sender; set public_url"
    resources = [each.resource for each in table.renew]
    if len(set(resources)) < len(resources):
        yield "renew names a resource twice"
    yield from (
        f"renew names {each!r}; expected {renewal.resource}"
        for each in resources
        if renewal and not re.fullmatch(renewal.resource, each)
    )


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
