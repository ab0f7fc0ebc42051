"""`hookonce sources secrets`: secrets received in handshakes. A secret is printed only if that is asked for."""

import click

from hookonce.receiver.cli.action_command import done
from hookonce.receiver.cli.desk import desk, own_desk
from hookonce.receiver.cli.options.event_options import AS_JSON
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.sources import forget_handed_secret, list_handed_secrets, opened_secrets


@click.group()
def secrets() -> None:
    """List and delete secrets received in handshakes."""


@secrets.command("list")
@click.option("--show", "is_shown", is_flag=True, help="Print the secrets themselves.")
@AS_JSON
def list_secrets(*, is_shown: bool, as_json: bool) -> None:
    """List handed-out secrets.

    One is `in use` where the source has no configured secret. To keep one for good, put it into the
    configuration: in use or not, it was the first to come, and anyone who knows the URL could have sent it.
    """
    with own_desk() if is_shown else desk() as here:  # secrets leave no machine but that of the ledger
        found = here.ask(list_handed_secrets).data
        opened = opened_secrets(here) if is_shown and isinstance(here, Desk) else {}
    if as_json:
        for one in found:
            print_json(one.model_dump() | {"secret": opened.get(one.source)})
        return
    hidden = "(sealed with a key that is not here)" if is_shown else "(--show)"
    show(
        ("source", "handed at", "in use", "secret"),
        [[one.source, one.handed_at, one.is_in_use, opened.get(one.source) or hidden] for one in found],
        empty="no sender has handed out a secret that is kept",
    )


secrets.add_command(
    done(
        forget_handed_secret,
        "forgot the secret of {source}; the next one that is handed out is kept",
        name="forget",
        about="Forget the secret that SOURCE was handed. Its sender may then hand out another. Audited.",
    )
)
