"""`hookonce sources secrets`: secrets received in handshakes. A secret is printed only if that is asked for."""

from typing import Any

import click

from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.connections import configured, ledger
from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.desk.sources import SourcePath, forget_handed_secret, list_handed_secrets
from hookonce.receiver.ledger import handshake_secrets


@click.group()
def secrets() -> None:
    """List and delete secrets received in handshakes."""


@secrets.command("list")
@click.option("--show", "is_shown", is_flag=True, help="Print the secrets themselves.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_secrets(*, is_shown: bool, as_json: bool) -> None:
    """List handed-out secrets.

    One is `in use` where the source has no configured secret. To keep one for good, put it into the
    configuration: in use or not, it was the first to come, and anyone who knows the URL could have sent it.
    """
    documents = _kept_here() if is_shown else _kept()
    if as_json:
        for document in documents:
            print_json(document)
        return
    hidden = None if is_shown else "(--show)"
    sealed = "(sealed with a key that is not here)"
    show(
        ("source", "handed at", "in use", "secret"),
        [[d["source"], d["handed_at"], d["in_use"], hidden or d["secret"] or sealed] for d in documents],
        empty="no sender has handed out a secret that is kept",
    )


@secrets.command()
@click.argument("source")
def forget(source: str) -> None:
    """Forget the secret that SOURCE was handed. Its sender may then hand out another. Audited."""
    with desk() as here:
        here.ask(forget_handed_secret, which=asking(SourcePath, source=source))
    tell(f"forgot the secret of {clean(source)}; the next one that is handed out is kept")


def _kept() -> list[dict[str, Any]]:
    with desk() as here:
        return [
            {"source": one.source, "handed_at": one.handed_at, "in_use": one.is_in_use, "secret": None}
            for one in here.ask(list_handed_secrets).data
        ]


def _kept_here() -> list[dict[str, Any]]:
    """Return them with the secrets themselves, which leave no machine but the one that has the ledger."""
    settings = configured()
    known = local_sources.sources(settings)
    with ledger(settings) as connection:
        kept = handshake_secrets.all_kept(connection, settings.keyring)
    return [
        {
            "source": one.source,
            "handed_at": one.at,
            "in_use": one.source in known and not known[one.source].secrets,
            "secret": one.secret,
        }
        for one in kept
    ]
