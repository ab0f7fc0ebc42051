"""`hookonce login` and `logout`: the tokens with which other inboxes are asked from this machine."""

import sys

import click

from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, show
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.remote import profiles
from hookonce.receiver.remote.addresses import address
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.errors import BadAddress, BadProfiles, NoProfile
from hookonce.receiver.remote.profiles import Profile

_LONGEST = 1000


@click.command(
    epilog=examples(
        "hookonce login https://inbox.example",
        "hookonce login https://inbox.example --name prod < token.txt",
        "hookonce login --list",
    )
)
@click.argument("url", required=False)
@click.option("--name", help="Name of the profile; default is the address's host.")
@click.option("--list", "listing", is_flag=True, help="List the profiles of this machine, and ask nothing.")
def login(url: str | None, name: str | None, *, listing: bool) -> None:
    """Keep a token of the inbox at URL, so that `--from`, `listen` and `--at` may ask it.

    The token is asked for without an echo, or read from stdin. It is tried, and kept for you alone in
    hookonce/profiles.json of your configuration folder. `hookonce tokens create` makes one, where the inbox is.
    """
    if listing:
        known = profiles.listing()
        show(
            ("profile", "inbox"),
            [(each.name, each.url) for each in known],
            empty="nobody has logged in anywhere from here; `hookonce login URL` does",
        )
        return
    if url is None:
        raise click.UsageError("name the address of an inbox, as https://inbox.example")
    try:
        where = address(url)
    except BadAddress as error:
        raise click.BadParameter(str(error), param_hint="URL") from None
    called = name or profiles.usual_name(where)
    if not profiles.NAME.fullmatch(called):
        raise click.BadParameter(
            f"{called!r} is no name; expected up to 63 of a-z 0-9 . _ -", param_hint="--name"
        )
    profile = Profile(called, where, _token(where))
    client = Client(profile)
    asked = client.get("/token")
    scopes = asked.get("scopes")
    if not isinstance(asked.get("name"), str) or not isinstance(scopes, list):
        raise click.ClickException(f"the server at {where} is no inbox that this version knows")
    profiles.save(profile)
    until = asked.get("expires_at")
    ends = f"until {clean(str(until))}" if until else "until it is revoked"
    tell(
        f"logged in to {where} as '{clean(asked['name'])}', scopes {clean(', '.join(map(str, scopes)))}, {ends}\n"
        f"kept as the profile '{called}' in {profiles.folder()}"
    )


@click.command(epilog=examples("hookonce logout https://inbox.example", "hookonce logout prod"))
@click.argument("profile", metavar="URL|NAME")
def logout(profile: str) -> None:
    """Forget the token of an inbox, by its URL or the profile's name. There it is good until it is revoked."""
    try:
        gone = profiles.remove(profile)
    except NoProfile as error:
        raise NotFound(str(error)) from None
    except (BadAddress, BadProfiles) as error:
        raise click.ClickException(str(error)) from None
    tell(f"forgot the token of '{gone.name}' ({gone.url}); `hookonce tokens revoke` there ends it")


def _token(where: str) -> str:
    if sys.stdin.isatty():
        given = click.prompt(f"token of {where}", hide_input=True, err=True)
    else:
        given = sys.stdin.read(_LONGEST)
    token = str(given).strip()
    if not profiles.is_token(token):
        raise click.ClickException(
            "that is no API token; expected hko_ and 43 characters, as `hookonce tokens create` prints it"
        )
    return token
