"""`hookonce secrets`: what senders handed out themselves. A secret is printed only if that is asked for."""

import click

from receiver.cli import local
from receiver.cli.errors import NotFound
from receiver.cli.servers import configured, ledger, operator
from receiver.cli.tables import clean, print_json, show
from receiver.ledger import handed
from receiver.spelling import did_you_mean


@click.group()
def secrets() -> None:
    """See and forget secrets that senders handed out."""


@secrets.command("list")
@click.option("--show", "is_shown", is_flag=True, help="Print the secrets themselves.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_secrets(*, is_shown: bool, as_json: bool) -> None:
    """List handed-out secrets.

    One is `in use` where the source has no configured secret. To go on with one for good, put it into the
    configuration: in use or not, it was the first to come, and anyone who knows the URL could have sent it.
    """
    settings = configured()
    known = local.sources(settings)
    with ledger(settings) as connection:
        kept = handed.all_kept(connection)
    documents = [
        {
            "source": one.source,
            "handed_at": one.at,
            "in_use": one.source in known and not known[one.source].secrets,
            "secret": one.secret if is_shown else None,
        }
        for one in kept
    ]
    if as_json:
        for document in documents:
            print_json(document)
        return
    hidden = None if is_shown else "(--show)"
    show(
        ("source", "handed at", "in use", "secret"),
        [[d["source"], d["handed_at"], d["in_use"], hidden or d["secret"]] for d in documents],
    )


@secrets.command()
@click.argument("source")
def forget(source: str) -> None:
    """Forget the secret that SOURCE was handed. Its sender may then hand out another. Audited."""
    with ledger() as connection:
        if not handed.forget(connection, source, operator()):
            names = [one.source for one in handed.all_kept(connection)]
            raise NotFound(f"no secret is kept for {source!r}{did_you_mean(source, names)}")
    click.echo(f"forgot the secret of {clean(source)}; the next one that is handed out is kept", err=True)
