"""`hookonce trigger`: send what a sender would send, signed with the source's own secret."""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import click
import requests

from hookonce.providers import Delivery
from hookonce.providers.kit import SignOptions, registry
from hookonce.providers.kit.crypto.secret_keys import wrong_secret
from hookonce.providers.kit.provider import Provider
from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.output.errors import NotFound
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.dev import samples
from hookonce.receiver.source import Source

STALE_AGE = timedelta(hours=2)
ANSWER_TIMEOUT = timedelta(seconds=15)
_UUIDS = frozenset({"github", "gitlab", "shopify"})
"""Senders whose event ids are UUIDs; others get `evt_…`."""


@dataclass(frozen=True)
class SampleDelivery:
    """One event to send: what, as what, and to whom."""

    source: Source
    target: str
    event_id: str
    type: str
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What the receiver said to one delivery; `status` is its word, or its reason for a refusal."""

    http_status: int
    status: str
    event_id: str
    type: str


@click.command()
@click.argument("source", required=False, shell_complete=completion_types.SOURCES)
@click.argument("kind", metavar="[TYPE]", required=False)
@click.option(
    "--times", default=1, show_default=True, type=click.IntRange(1), help="Send the same event so often."
)
@click.option("--forge", is_flag=True, help="Sign with a wrong secret: should be rejected.")
@click.option("--stale", is_flag=True, help="Sign with a time two hours ago: should be rejected.")
@click.option(
    "--set", "changes", multiple=True, metavar="PATH=VALUE", help="Change the body: data.object.amount=500."
)
@click.option("--url", help="Send there; default is the receiver on this machine ($PORT, or `hookonce dev`).")
@click.option("--event-id", help="The sender's id of the event; default is a new one.")
@click.option(
    "--list", "listing", is_flag=True, help="List the types there is a sample of, and send nothing."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per answer.")
def trigger(source: str | None, *, listing: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Send SOURCE a realistic event of TYPE, signed with its first secret, as its sender would.

    Prints one line per answer; exit 1 unless each is as it should be: accepted, or rejected (--forge, --stale).
    """
    if listing:
        _list(source, as_json=as_json)
        return
    if source is None:
        raise click.UsageError("name a source; `hookonce sources list` shows all")
    times, forge, stale = options["times"], options["forge"], options["stale"]
    sample = _sample_delivery(
        source, options["kind"], options["url"], options["event_id"], options["changes"]
    )
    right = True
    for answer in _send(sample, times, forge=forge, stale=stale):
        if as_json:
            print_json(vars(answer))
        else:
            click.echo(
                f"{answer.http_status} {clean(answer.status)} {clean(answer.event_id)} {clean(answer.type)}"
            )
        refused = 400 <= answer.http_status < 500  # noqa: PLR2004  HTTP's own classes
        right = right and (refused if forge or stale else 200 <= answer.http_status < 300)  # noqa: PLR2004
    if not right:
        raise click.ClickException(f"expected {'a refusal (4xx)' if forge or stale else 'a 2xx'} every time")


def _list(source: str | None, *, as_json: bool) -> None:
    settings = configured()
    if source is None:
        names = registry.names(settings.provider_places)
    else:
        names = [local_sources.source(settings, source).provider.name]
    rows = [(name, kind) for name in names for kind in samples.types(name)]
    if as_json:
        for name, kind in rows:
            print_json({"provider": name, "type": kind})
    else:
        show(("provider", "type"), rows)


def _sample_delivery(
    name: str, kind: str | None, url: str | None, event_id: str | None, changes: tuple[str, ...]
) -> SampleDelivery:
    settings = configured()
    source = local_sources.source(settings, name)
    if not source.secrets:
        raise click.ClickException(
            f"source {name!r} has no signing secret here; set one as for `hookonce serve`, or start `hookonce dev`"
        )
    target = url or local_sources.base_url(settings)
    if not re.match(r"https?://[^/]", target):
        raise click.UsageError(
            f"--url: {target!r} is not a URL; expected one like {local_sources.base_url(settings)}"
        )
    if urlsplit(target).path in {"", "/"}:
        target = f"{target.rstrip('/')}/hooks/{name}"
    provider = source.provider
    event_id = event_id or (str(uuid.uuid4()) if provider.name in _UUIDS else f"evt_{uuid.uuid4().hex[:24]}")
    now = datetime.now(UTC)
    kind = kind or _usual(provider.name, now)
    return SampleDelivery(
        source, target, event_id, kind, _changed(_body(provider, kind, event_id, now), changes)
    )


def _usual(provider: str, now: datetime) -> str:
    """Find the type of the sample that stands for a provider; senders with the type in a header must be told it."""
    usual = samples.body(provider, None, event_id="", now=now)
    of_type = (
        kind
        for kind in samples.types(provider)
        if samples.body(provider, kind, event_id="", now=now) == usual
    )
    return next(of_type, "test")


def _body(provider: Provider, kind: str, event_id: str, now: datetime) -> bytes:
    if provider.sample and not samples.types(provider.name):
        return provider.sample(event_id, kind)
    try:
        body = samples.body(provider.name, kind, event_id=event_id, now=now)
    except LookupError as error:
        raise NotFound(str(error.args[0])) from None
    if not provider.id_is_signed and event_id.encode() not in body:
        # where the id is in a header only, two events with one body would be told to be repeats
        return _changed(body, (f"hookonce_trigger={json.dumps(event_id)}",))
    return body


def _changed(body: bytes, changes: tuple[str, ...]) -> bytes:
    if not changes:
        return body
    try:
        document = json.loads(body)
        for change in changes:
            samples.set_path(document, change)
    except ValueError as error:
        raise click.UsageError(f"--set: {error}") from None
    return samples.encode(document)


def _send(sample: SampleDelivery, times: int, *, forge: bool, stale: bool) -> Iterator[Answer]:
    """Send the event so many times, each time signed anew, as a sender's retries are."""
    provider = sample.source.provider
    if stale and provider.tolerance is None:
        raise click.ClickException(
            f"{provider.name} signs no time, so nothing it sends is ever stale; leave out --stale"
        )
    secret = wrong_secret(sample.source.secrets[0]) if forge else sample.source.secrets[0]
    target = urlsplit(sample.target)
    signed_url = sample.source.public_url + target.path + (f"?{target.query}" if target.query else "")
    with requests.Session() as session:
        session.trust_env = False  # a proxy or ~/.netrc is for other addresses
        for _ in range(times):
            now = datetime.now(UTC) - (STALE_AGE if stale else timedelta(0))
            said = SignOptions(event_id=sample.event_id, type=sample.type, url=signed_url, method="POST")
            try:
                delivery = provider.delivery(sample.body, secret, now, **said)
            except ValueError as error:
                raise click.ClickException(f"nothing to sign with: {error}") from None
            yield _answer(session, sample, delivery)


def _answer(session: requests.Session, sample: SampleDelivery, delivery: Delivery) -> Answer:
    target = urlsplit(sample.target)._replace(query=urlsplit(delivery.url).query)  # it may hold the signature
    try:
        response = session.post(
            local_sources.addressed(target.geturl(), delivery),
            data=delivery.body,
            headers={"user-agent": "hookonce-trigger", **delivery.headers},
            timeout=ANSWER_TIMEOUT.total_seconds(),
            allow_redirects=False,
        )
    except requests.RequestException as error:
        raise click.ClickException(
            f"{sample.target} does not answer ({type(error).__name__}); "
            "start `hookonce dev` or `hookonce serve`, or name the receiver with --url"
        ) from None
    status, event_id = _reply_of(response)
    return Answer(response.status_code, status, event_id or sample.event_id, _type(sample, delivery))


def _type(sample: SampleDelivery, delivery: Delivery) -> str:
    """Return the event's type as the ledger has it: the provider's word for it, which a sample's name may extend.

    A provider that can't read the body, or has a bug, has been heard of in the receiver's answer.
    """
    provider = sample.source.provider
    try:
        decoded = provider.decode(delivery, sample.source.secrets) if provider.decode else delivery
        events = provider.events(decoded)
    except Exception:  # noqa: BLE001  see above
        return sample.type
    return events[0].type if events else sample.type


def _reply_of(response: requests.Response) -> tuple[str, str | None]:
    """Read hookonce's own answers; of a reply in the sender's own form there is only its beginning."""
    try:
        document = response.json()
        if "code" in document:
            return str(document["code"]), None
        events = document["events"]
        return str(events[0]["status"] if len(events) == 1 else document["status"]), events[0]["event_id"]
    except (ValueError, LookupError, TypeError):
        return response.text[:60] or response.reason, None
