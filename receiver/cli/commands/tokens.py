"""`hookonce tokens`: who may use the admin API. A token is printed once, when it is made."""

from datetime import timedelta

import click

from hookonce.receiver.cli.action_command import done, listing
from hookonce.receiver.cli.desk import own_desk
from hookonce.receiver.cli.options.time_option import SPAN
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.desk.access.tokens import list_tokens, make_token, revoke_token
from hookonce.receiver.desk.rows import Scope


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
    with own_desk() as here:
        try:
            token = make_token(here, name, {Scope(scope) for scope in scopes}, expires)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="NAME") from None
    click.echo(token)
    tell("keep it now: the ledger holds its hash only")


tokens.add_command(
    listing(
        list_tokens,
        {
            "name": "name",
            "scopes": lambda token: ", ".join(token.scopes),
            "created": "created_at",
            "expires": "expires_at",
            "expired": "is_expired",
        },
        "there is no token; `hookonce tokens create` makes one",
        name="list",
    )
)
tokens.add_command(done(revoke_token, "revoked {name}", name="revoke"))
