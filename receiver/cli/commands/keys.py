"""`hookonce keys`: the keys that seal what is kept. A key is printed once, by `generate`, and never again."""

import os
import sys
from base64 import b64encode

import click

from hookonce.receiver.cli.connections import configured, ledger, operator
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.encryption import KEY_BYTES, Keyring, key_id
from hookonce.receiver.ledger.maintenance import key_rotation

_NO_KEYS = (
    "no encryption_keys are configured; make one with `hookonce keys generate`, then name it in [receiver]"
)


@click.group()
def keys() -> None:
    """Make, list and rotate the keys that seal bodies at rest."""


@keys.command()
def generate() -> None:
    """Print a new key, in base64; it is kept nowhere."""
    key = os.urandom(KEY_BYTES)
    click.echo(b64encode(key).decode())
    tell(
        f"key {key_id(key)}; put it where secrets are kept, and a reference to it (env:NAME or file:/path) into "
        "encryption_keys under [receiver]"
    )


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_keys(*, as_json: bool) -> None:
    """List keys by id, and how many rows need each. It looks at every row, which takes a while."""
    settings = configured()
    with ledger(settings) as connection:
        used = key_rotation.used(connection)
    names = list(used)
    found = {key for counts in used.values() for key in counts}
    others = sorted(key or "" for key in found - {*settings.keyring.ids})
    rows = [
        {"key": key or None, "use": _use(settings.keyring, key)}
        | {n: used[n].get(key or None, 0) for n in names}
        for key in [*settings.keyring.ids, *others]
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return
    show(("key", "use", *names), [[row["key"] or "(none)", *list(row.values())[1:]] for row in rows])


@keys.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def rotate(*, as_json: bool) -> None:
    """Seal with the first key what is under another or in the clear.

    Safe beside traffic, and to stop and run again. First give every receiver, worker and command the new key, and
    put it first. Exit 3 if rows are left under keys that are not configured.
    """
    settings = configured()
    if not settings.keyring.is_on:
        raise ConfigError([_NO_KEYS])
    done = key_rotation.Rotated()
    with ledger(settings) as connection:
        steps = key_rotation.rotate(connection, settings.keyring, operator())
        done = next(steps)
        with click.progressbar(length=done.total, label=f"{done.total} rows", file=sys.stderr) as bar:
            for done in steps:
                bar.update(done.sealed + sum(done.left.values()) - bar.pos)
    if as_json:
        print_json({"key": settings.keyring.first, "sealed": done.sealed, "left": done.left})
    tell(f"{done.sealed} rows are sealed again with key {settings.keyring.first}")
    for key, count in sorted(done.left.items()):
        tell(f"{count} rows are left under key {key}, which does not open them here")
    if done.left:
        sys.exit(Exit.PARTIAL)


def _use(keyring: Keyring, key: str) -> str:
    if not key:
        return "in the clear"
    if key == keyring.first:
        return "seals"
    return "opens" if key in keyring.ids else "not configured here"
