"""`hookonce tokens`: who may use the admin API. A token is printed once, when it is made."""

from dataclasses import asdict
from datetime import timedelta

import click

from hookonce.receiver.cli.connections import ledger, operator
from hookonce.receiver.cli.options.time_option import SPAN
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Scope


@click.group()
def tokens() -> None:
    """Make, list and revoke the tokens of the admin API (/api/v1)."""


@tokens.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="Scope of the token; may be repeated. bodies shows content; admin includes the others.",
)
@click.option("--expires", type=SPAN, help="Good for so long: 12h, 90d. Without, until it is revoked.")
def create(name: str, scopes: tuple[str, ...], expires: timedelta | None) -> None:
    """Make a token and print it, alone, on stdout. It can't be shown again. NAME is who acts, in the audit."""
    with ledger() as connection:
        try:
            token = api_tokens.create(
                connection, name, {Scope(scope) for scope in scopes}, expires, operator()
            )
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="NAME") from None
    click.echo(token)
    tell("keep it now: the ledger holds its hash only")


@tokens.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_tokens(*, as_json: bool) -> None:
    """List the tokens by name, expired ones too."""
    with ledger() as connection:
        found = api_tokens.listing(connection)
    if as_json:
        for token in found:
            print_json(asdict(token))
        return
    rows = [(t.name, ", ".join(t.scopes), t.created_at, t.expires_at, t.is_expired) for t in found]
    show(
        ("name", "scopes", "created", "expires", "expired"),
        rows,
        empty="there is no token; `hookonce tokens create` makes one",
    )


@tokens.command()
@click.argument("name")
def revoke(name: str) -> None:
    """Make a token worthless, at once."""
    with ledger() as connection:
        if not api_tokens.revoke(connection, name, operator()):
            names = [token.name for token in api_tokens.listing(connection)]
            raise NotFound(f"no token is called {name!r}{did_you_mean(name, names)}")
    tell(f"revoked {clean(name)}")
