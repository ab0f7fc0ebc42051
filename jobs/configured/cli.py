"""`hookonce forwards`: lists where events go on to, and sends one event now, without a run."""

import click

from hookonce.jobs.configured.forwards import NotForwarded, forwarder_of
from hookonce.jobs.configured.origin import Origin
from hookonce.jobs.event import ReceivedEvent
from hookonce.jobs.handlers import GiveUp, RetryLater
from hookonce.jobs.provider_lookup import data_of, provider_lookup
from hookonce.providers import Delivery
from hookonce.providers.kit.events.fields import EventView
from hookonce.providers.kit.events.subjects import Subject, subject_of
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.config.suggestions import did_you_mean, read_on
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries.event_details import detail


class _NotFound(click.ClickException):
    """There is no such forward or event."""

    exit_code = 4  # as everywhere: `hookonce help exits`


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
        guess = did_you_mean(name, settings.forwards)
        raise _NotFound(
            read_on(f"no forward is called '{name}'{guess}", "`hookonce forwards list` shows all")
        )
    forwarder = forwarder_of(settings.forwards[name], settings)
    stored = _event(settings, event, settings.forwards[name].handler)
    place, failed = forwarder.to.shown, ""
    try:
        left_out = forwarder.post(stored, None)
        failed = str(left_out["skipped"]) if left_out else ""
    except (NotForwarded, GiveUp) as error:
        failed = str(error)
    except RetryLater as error:
        failed = f"{place} is away or asks to wait ({error}); see `hookonce doctor`"
    if failed:
        raise click.ClickException(f"not sent: {failed}")
    click.echo(f"sent event {event} to {place}")


def _event(settings: Settings, number: int, handler: str) -> ReceivedEvent:
    """Return an event of the ledger as a handler gets it. Raises `click.ClickException` where it can't be had."""
    with connections.connect(settings.database_url) as connection:
        found = detail(connection, number, settings.keyring)
    if found is None:
        raise _NotFound(f"no event is '{number}'; expected a ledger id, see `hookonce events list`")
    row, body = found.event, found.with_content().body
    if body is None or body.unreadable:
        why = found.why_no_body or "can not be opened here"
        raise click.ClickException(f"the body of event {number} {why}")
    provider = provider_lookup(settings)(row.source, row.provider)
    delivery = Delivery("POST", body.url, body.headers, body.body)

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
        _parse=lambda: data_of(None if body.is_element else provider, delivery),
        _make=lambda _: Origin(0, body.is_element),
        _subject=subject,
    )
