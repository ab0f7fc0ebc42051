"""`hookonce listen`: events of another inbox go to a program on this machine, as their senders would send them."""

import signal
import sys
import threading
import time
from contextlib import suppress
from datetime import datetime, timedelta
from types import FrameType
from urllib.parse import quote, urlsplit

import click

from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.listen.forwarder import Forwarder
from hookonce.receiver.cli.listen.signers import Signers
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.pulled import file_name
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.remote import profiles
from hookonce.receiver.remote.addresses import is_loopback
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.errors import RemoteError
from hookonce.receiver.remote.profiles import Profile
from hookonce.receiver.remote.pull import CursorFile, Puller, Wanted

PAUSE = timedelta(seconds=2)
"""Between two events that are asked for by their ids: two statements a second, of which each costs four."""
_NUMBER_DIGITS = 18


@click.command(
    epilog=examples(
        "hookonce listen https://inbox.example --forward http://localhost:3000/hook",
        "hookonce listen prod --forward http://localhost:3000/hooks/{source} --since 2h",
        "hookonce listen prod --forward http://localhost:3000/hook --again 8812",
        "hookonce listen prod --forward http://localhost:3000/hook --only-failed",
    )
)
@click.argument("inbox", metavar="URL|NAME")
@click.option(
    "--forward",
    required=True,
    metavar="URL",
    help="Send events there; {source} stands for the name of their source.",
)
@click.option("--since", type=SINCE, help="Begin with what came since then (2h, yesterday); default: now.")
@click.option("--source", help="Only of this source.")
@click.option("--type", "kind", help="Only of this type; * stands for any text (invoice.*).")
@click.option(
    "--again", metavar="ID", multiple=True, help="Send this event again, and nothing else; may be repeated."
)
@click.option(
    "--only-failed", is_flag=True, help="Send again what the program did not take, and nothing else."
)
@click.option(
    "--elsewhere", is_flag=True, help="Let --forward be another machine: production's events go there."
)
@click.option(
    "--timeout",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0.1, 600),
    help="Seconds that the program has for an answer.",
)
def listen(  # noqa: PLR0913, PLR0917  its options
    inbox: str,
    forward: str,
    since: datetime | None,
    source: str | None,
    kind: str | None,
    again: tuple[str, ...],
    timeout: float,
    *,
    only_failed: bool,
    elsewhere: bool,
) -> None:
    """Send the events of an inbox to a program here, as their senders would; `hookonce login` first.

    Bodies are those that came, byte for byte unless they are redacted, signed with a secret that is printed for
    each source: give that one to the program. It goes on where it stopped the last time, until Ctrl-C. Where nothing
    listens, events wait; what is answered otherwise than 2xx has failed, and the next one follows.
    """
    require_target(forward, elsewhere=elsewhere)
    profile = profiles.find(inbox)
    wanted = Wanted(since, source, kind)
    file = cursor_file(profile, wanted, forward)
    client = Client(profile)
    forwarder = Forwarder(profile.url, forward, timedelta(seconds=timeout), Signers(configured(), file), file)
    puller = Puller(client, wanted, file, forwarder.tell)
    try:
        if again or only_failed:
            sys.exit(_send_again(client, puller, forwarder, file, again))
        with file.held():
            _follow(client, puller, forwarder, wanted, forward)
    except KeyboardInterrupt:
        click.echo("stopped; the next start goes on from here")
    finally:
        client.close()


def _follow(client: Client, puller: Puller, forwarder: Forwarder, wanted: Wanted, to: str) -> None:
    with suppress(RemoteError, LookupError, TypeError, AttributeError):  # else as their events come
        for shown in client.get("/sources", tries=1)["data"]:
            if wanted.source in {None, shown["name"]}:
                forwarder.introduce(str(shown["name"]), str(shown["provider"]))
    ended, is_ready = threading.Event(), False

    def stop(_number: int, _frame: FrameType | None) -> None:
        """End between two events, so that none is sent twice; at once where none is on its way, or the second time."""
        if ended.is_set() or not forwarder.is_sending:
            raise KeyboardInterrupt
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    for page in puller.pages(ended, follows=True):
        if not is_ready:  # what comes from now on is behind the cursor
            click.echo(f"ready: events go to {to}; Ctrl-C stops, and the next start goes on from there")
            is_ready = True
        if not forwarder.page(page, ended):
            raise KeyboardInterrupt


def _send_again(
    client: Client, puller: Puller, forwarder: Forwarder, file: CursorFile, named: tuple[str, ...]
) -> Exit:
    file.read()
    pull = puller.begin()
    events = [_number(client, name) for name in named] or file.kept.failed
    if not events:
        click.echo("nothing has failed here")
        return Exit.OK
    taken = 0
    for place, event in enumerate(events):
        if place:
            time.sleep(PAUSE.total_seconds())
        outcome = forwarder.send(puller.one(pull, event), None)
        if outcome is not None and outcome.is_taken is not None:
            file.note(event, has_failed=not outcome.is_taken)
            taken += outcome.is_taken
    forwarder.status.say(0, is_last=True)
    if taken == len(events):
        return Exit.OK
    return Exit.PARTIAL if taken else Exit.FAILURE


def _number(client: Client, name: str) -> int:
    """Return the ledger id of an event by whatever names it. Raises: `NotFound`, `RemoteError`."""
    if name.isascii() and name.isdecimal() and len(name) <= _NUMBER_DIGITS:
        return int(name)
    found = client.get(f"/events/{quote(name, safe='')}").get("id")
    if not isinstance(found, int):
        raise NotFound(f"no event is called {name!r} there")
    return found


def cursor_file(profile: Profile, wanted: Wanted, to: str) -> CursorFile:
    """Return the file of a cursor: another for another inbox, filter or target."""
    return CursorFile(profiles.state_folder() / file_name("listen", profile, wanted, to))


def require_target(address: str, *, elsewhere: bool) -> None:
    """Require an address on this machine, or that it may be `elsewhere`. Raises: `click.BadParameter`."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    is_plain = address.isprintable() and not set(address) & set(" \\") and parts.username is None
    if parts.scheme not in {"http", "https"} or not host or port == 0 or not is_plain:
        raise click.BadParameter(
            f"expected an address like http://localhost:3000/hook, not {address!r}", param_hint="--forward"
        )
    if not is_loopback(host) and not elsewhere:
        raise click.BadParameter(
            f"{host} is not this machine, and production's events would go there; --elsewhere says that it may be",
            param_hint="--forward",
        )
