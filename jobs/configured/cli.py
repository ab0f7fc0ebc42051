"""`hookonce forwards`: what goes on to where, and one event sent now, without a run."""

import sys

import click

from hookonce.jobs.configured.forwards import NotForwarded, forwarder_of
from hookonce.jobs.configured.origin import Origin
from hookonce.jobs.event import ReceivedEvent, json_or_none
from hookonce.jobs.handlers import GiveUp, RetryLater
from hookonce.jobs.provider_lookup import provider_lookup
from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.events.fields import EventView
from hookonce.providers.kit.events.subjects import Subject, subject_of
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries.event_details import detail


@click.group()
def forwards() -> None:
    """List forwards, and send one event now."""


@forwards.command("list")
def list_() -> None:
    """List forwards: which events go on to where.

    `hookonce handlers list` shows how their runs ended.
    """
    for each in load_settings(need_secrets=False).forwards.values():
        place = each.address.shown if each.address else f"{each.to} (not set here)"
        when = f" when {each.when}" if each.when else ""
        click.echo(f"{each.name}  {each.source} {','.join(each.types)}{when}  {place}")


@forwards.command("try")
@click.argument("name")
@click.option("--event", type=click.IntRange(1), required=True, help="Ledger id of the event.")
def try_(name: str, event: int) -> None:
    """Send one event now, by the forward NAME.

    Exit 1 if it was not taken. No run is made or ended. The message has the id of cycle 0, so that its broker tells it
    from those of runs.
    """
    settings = load_settings(need_secrets=False)
    if name not in settings.forwards:
        raise ConfigError([f"no forward is called '{name}'; `hookonce forwards list` shows all"])
    forwarder = forwarder_of(settings.forwards[name], settings)
    stored = _event(settings, event, settings.forwards[name].handler)
    try:
        result = (
            forwarder.post(stored, None)
            if forwarder.to.kind == "https"
            else forwarder.publish([stored], None)[0]
        )
    except (NotForwarded, GiveUp) as error:
        click.echo(f"not sent: {error}", err=True)
        sys.exit(1)
    except RetryLater as error:
        click.echo(
            f"not sent: {forwarder.to.shown} is away or asks to wait ({error}); see `hookonce doctor`",
            err=True,
        )
        sys.exit(1)
    click.echo(
        f"sent event {event} to {forwarder.to.shown}" if not _is_left_out(result) else f"not sent: {result}"
    )


def _is_left_out(result: object) -> bool:
    return isinstance(result, dict) and "skipped" in result


def _event(settings: Settings, number: int, handler: str) -> ReceivedEvent:
    """Return an event of the ledger as a handler gets it. Raises `click.ClickException` where it can't be had."""
    with connections.connect(settings.database_url) as connection:
        found = detail(connection, number, settings.keyring)
    if found is None:
        raise click.ClickException(f"there is no event {number}")
    if found.body is None or found.body.unreadable:
        raise click.ClickException(
            f"the body of event {number} {found.why_no_body or 'can not be opened here'}"
        )
    row, body = found.event, found.body
    provider = provider_lookup(settings)(row.source, row.provider)
    delivery = Delivery("POST", body.url, body.headers, body.body)

    def parse() -> object:
        try:
            return (
                provider.events(delivery)[0].data
                if provider and not body.is_element
                else json_or_none(body.body)
            )
        except (Rejected, IndexError):
            return None

    def subject(data: object) -> Subject | None:
        declared = provider.subject if provider else None
        return subject_of(None, declared, EventView(delivery, data, data), row.type, row.received_at)

    return ReceivedEvent(
        id=number,
        event_id=row.event_id,
        source=row.source,
        provider=row.provider,
        type=row.type,
        account=row.account,
        occurred_at=row.occurred_at,
        received_at=row.received_at,
        headers=body.headers,
        raw=body.body,
        attempt=1,
        repeat_of=None,
        is_test=False,
        _handler=handler,
        _parse=parse,
        _make=lambda _: Origin(0, body.is_element),
        _subject=subject,
    )
