"""`hookonce events open`: the page of an event in the console, in a browser."""

import sys
import webbrowser

import click

from hookonce.receiver.cli.connections import at, configured
from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.local_sources import dev
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import CONSOLE_VARIABLE
from hookonce.receiver.desk.events import EventPath, get_event


@click.command("open", epilog=examples("hookonce events open 12", "hookonce events open stripe:evt_1Nxy"))
@click.argument("reference", metavar="ID", shell_complete=completion_types.EVENTS)
def open_(reference: str) -> None:
    """Open an event's page of the console in a browser.

    Its address is printed, too, and nothing but that without a terminal. ID is the ledger id, source:event_id, or how a
    sender's id begins. The console is at HOOKONCE_CONSOLE, else at public_url, else where `hookonce dev` runs.
    """
    console = _console()
    with desk() as here:
        found = here.ask(get_event, which=asking(EventPath, event=reference))
    url = f"{console}/admin/events/{found.id}"
    click.echo(url)
    if sys.stdout.isatty() and not webbrowser.open(url):
        tell("no browser is found here; open the address elsewhere")


def _console() -> str:
    """Return the console's address without a slash at its end. Raises: `ConfigError`, and what keeps `--at` away."""
    if named := at():
        from hookonce.receiver.remote import profiles

        return profiles.find(named).url
    settings = configured()
    port = dev(settings.data).port
    console = settings.console or (f"http://127.0.0.1:{port}" if port else "")
    if not console.startswith(("http://", "https://")):
        what = (
            f"{console!r} is not the address of a console"
            if console
            else "the console's address is not configured"
        )
        raise ConfigError(
            [f"{what}; set {CONSOLE_VARIABLE} to what precedes /admin, as https://hooks.example.com"]
        )
    return console
