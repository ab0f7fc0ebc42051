"""`hookonce keys`: the keys that seal what is kept. A key is printed once, by `generate`, and never again."""

import os
import sys
from base64 import b64encode

import click

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.cli.desk import own_desk
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.desk.access.keys import list_keys, rotation
from hookonce.receiver.desk.forms import plain
from hookonce.receiver.encryption import KEY_BYTES, key_id


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


keys.add_command(
    listing(
        list_keys,
        {
            "key": lambda each: each.key or "(none)",
            "use": "use",
            "rows": lambda each: plain({name: number for name, number in each.rows.items() if number}),
        },
        "no key is configured, and nothing is kept",
        document=lambda each: {"key": each.key, "use": each.use, **each.rows},
        name="list",
    )
)


@keys.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def rotate(*, as_json: bool) -> None:
    """Seal with the first key what is under another or in the clear.

    Safe beside traffic, and to stop and run again. First give every receiver, worker and command the new key, and
    put it first. Exit 3 if rows are left under keys that are not configured.
    """
    with own_desk() as here:
        steps, first = rotation(here), here.settings.keyring.first
        done = next(steps)
        with click.progressbar(length=done.total, label=f"{done.total} rows", file=sys.stderr) as bar:
            for done in steps:
                bar.update(done.sealed + sum(done.left.values()) - bar.pos)
    if as_json:
        print_json({"key": first, "sealed": done.sealed, "left": done.left})
    tell(f"{done.sealed} rows are sealed again with key {first}")
    for key, count in sorted(done.left.items()):
        tell(f"{count} rows are left under key {key}, which does not open them here")
    if done.left:
        sys.exit(Exit.PARTIAL)
