"""`hookonce trigger`: send what a sender would send, signed with the source's own secret."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import requests
from click.core import ParameterSource

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import registry
from hookonce.providers.kit.crypto.secret_keys import wrong_secret
from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.connections import at, configured
from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.listener import Listener, listener
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, listed, print_json
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.sources import SourcePath, TestEventRequest, send_test_event
from hookonce.receiver.samples import documents, files
from hookonce.receiver.samples.documents import Document
from hookonce.receiver.source import Source
from hookonce.receiver.vocabulary import REFUSALS, UNAVAILABLE

STALE_AGE = timedelta(hours=2)
ANSWER_TIMEOUT = timedelta(seconds=15)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE = re.compile(r"(?:[!-~]([ \t!-~]*[!-~])?)?")


@dataclass(frozen=True)
class SampleDelivery:
    """One event to send: what, and to whom."""

    source: Source
    target: str
    document: Document


@dataclass(frozen=True)
class Answer:
    """The answer of the receiver to one delivery; `status` is its word, or its reason for a refusal."""

    http_status: int
    status: str
    event_id: str
    type: str
    url: str

    @property
    def is_success(self) -> bool:
        """Whether it was taken in."""
        return 200 <= self.http_status < 300  # noqa: PLR2004  HTTP's own classes

    @property
    def is_refusal(self) -> bool:
        """Whether it was refused for what it is; anything else that is no success may be taken in later."""
        return 400 <= self.http_status < 500  # noqa: PLR2004  HTTP's own classes


@click.command(
    epilog=examples(
        "hookonce trigger stripe invoice.paid",
        "hookonce trigger stripe invoice.paid --set data.object.amount_paid=500",
        "hookonce trigger github push --times 3",
        "hookonce trigger shopify orders/create --header x-shopify-shop-domain=my.myshopify.com",
        "hookonce trigger github push --count 100",
        "hookonce trigger stripe --forge",
        "hookonce trigger stripe --list",
    )
)
@click.argument("source", required=False, shell_complete=completion_types.SOURCES)
@click.argument("kind", metavar="[TYPE]", required=False, shell_complete=completion_types.SAMPLE_TYPES)
@click.option(
    "--times", default=1, show_default=True, type=click.IntRange(1), help="Deliver the event N times."
)
@click.option(
    "--count", default=1, show_default=True, type=click.IntRange(1), help="Number of events to send."
)
@click.option("--forge", is_flag=True, help="Sign with a wrong secret: should be rejected.")
@click.option("--stale", is_flag=True, help="Sign with a time two hours ago: should be rejected.")
@click.option(
    "--set", "changes", multiple=True, metavar="PATH=VALUE", help="Change the body: data.object.amount=500."
)
@click.option("--remove", "removals", multiple=True, metavar="PATH", help="Leave something out of the body.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="Send this header, in place of what the sender sends; signed where the sender signs it.",
)
@click.option("--edit", is_flag=True, help="Open the body in $EDITOR first; without saving, nothing is sent.")
@click.option("--url", help="Send there; default is the receiver on this machine ($PORT, or `hookonce dev`).")
@click.option("--event-id", help="The sender's id of the event; default is a new one.")
@click.option(
    "--list", "listing", is_flag=True, help="List the types there is a sample of, and send nothing."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per answer.")
def trigger(source: str | None, *, listing: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Send SOURCE a realistic event of TYPE, signed with its first secret, as its sender would.

    Ids and times in it are new each time. Says where it was sent, and prints one line per answer; exit 1 unless each
    is as it should be: accepted, or rejected (--forge, --stale).
    With `hookonce --at` the other inbox makes and signs the event itself; its source needs `tests = true`.
    """
    if at():
        _trigger_there(source, options, as_json=as_json)
        return
    settings = configured()
    if listing:
        _list(settings, source, as_json=as_json)
        return
    if source is None:
        raise click.UsageError("name a source; `hookonce sources list` shows all")
    if options["count"] > 1 and (options["edit"] or options["event_id"] is not None):
        raise click.UsageError("--count makes a new event each time; leave out --edit and --event-id")
    times, forge, stale = options["times"], options["forge"], options["stale"]
    found = _source(settings, source)
    target = _target(settings, found, options["url"])
    first = _document(found, options)  # whatever is wrong with it is told before anything is sent
    others = (_document(found, options) for _ in range(options["count"] - 1))
    if not as_json:
        tell(f"to {clean(target)}")
    wrong: Answer | None = None
    samples = (SampleDelivery(found, target, each) for each in chain([first], others))
    for answer in _send(found, samples, times, forge=forge, stale=stale):
        if as_json:
            print_json(vars(answer))
        else:
            word = paint(_style(answer), clean(answer.status))
            click.echo(f"{answer.http_status} {word} {clean(answer.event_id)} {clean(answer.type)}")
        is_right = answer.is_refusal if forge or stale else answer.is_success
        wrong = wrong or (None if is_right else answer)
    if wrong:
        raise click.ClickException("expected a refusal (4xx)" if forge or stale else _why(found, wrong))


def _why(source: Source, answer: Answer) -> str:
    """Return who refused what was rightly signed, the cause as far as it is known, and what to do."""
    there = urlsplit(answer.url)
    is_here = there.hostname in {"127.0.0.1", "localhost", "::1"}
    who = listener(there.port or 80) if is_here else None
    at = f"{there.hostname}:{there.port}" if there.port else str(there.hostname)
    if not re.fullmatch("[a-z_]+", answer.status):
        return (
            f"{_named(who) or at} answered {answer.http_status}, which is no answer of hookonce's; see --url"
        )
    if who and not _is_of_this_project(who.directory):
        return (
            f"{answer.status}: {_named(who)} answered at {at}, which is another project's directory; "
            "start `hookonce dev` here, or name this project's receiver with --url"
        )
    receiver = f"{_named(who) or 'the receiver'} at {at}"
    means = " ".join(REFUSALS.get(answer.status, UNAVAILABLE.get(answer.status, (answer.status,))))
    if not answer.is_refusal:
        return f"{receiver} can't take it now (HTTP {answer.http_status}): {means}"
    by = f"{receiver} rejected it"
    if answer.status == Reason.BAD_SIGNATURE:
        name = source.secret_names[0] if source.secret_names else "made up by `hookonce dev`"
        return (
            f"{by}: its secret of source {source.name!r} is not the one that signed here ({name}); "
            "start it again with the same environment"
        )
    return f"{by}: {means}"


def _style(answer: Answer) -> str:
    if answer.is_success:
        return answer.status
    return "rejected" if answer.is_refusal else "warn"


def _named(who: Listener | None) -> str:
    if who is None:
        return ""
    is_dev = "hookonce" in who.command and " dev" in who.command
    return f"{'`hookonce dev`' if is_dev else 'the process'} {who.pid} in {who.directory}"


def _is_of_this_project(directory: str) -> bool:
    """Whether a receiver that runs in `directory` may have the configuration that this command has read."""
    own = [Path.cwd().resolve(), Path(os.environ.get("HOOKONCE_CONFIG", "hookonce.toml")).resolve().parent]
    there = Path(directory)
    return any(there.is_relative_to(each) or each.is_relative_to(there) for each in own)


def _trigger_there(source: str | None, options: Mapping[str, Any], *, as_json: bool) -> None:
    """Have another inbox send itself a test event."""
    context = click.get_current_context()
    given = [name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if source is None or set(given) - {"kind"}:
        raise click.UsageError(
            "with --at only SOURCE and TYPE: the other inbox makes and signs the event itself"
        )
    with desk() as here:
        asked = asking(TestEventRequest, type=options["kind"])
        sent = here.ask(send_test_event, which=asking(SourcePath, source=source), asked=asked)
    if as_json:
        print_json(sent.model_dump())
    else:
        click.echo(f"{paint('accepted')} {clean(sent.event_id)} {clean(sent.type)} as event {sent.id}")


def _list(settings: Settings, source: str | None, *, as_json: bool) -> None:
    if source is None:
        names = registry.names(settings.provider_places)
    else:
        names = [local_sources.source(settings, source).provider.name]
    rows = [(name, kind) for name in names for kind in files.types(name)]
    empty = f"no sample of {', '.join(names)}; any type can be sent"
    listed(("provider", "type"), rows, empty, as_json=as_json)


def _source(settings: Settings, name: str) -> Source:
    source = local_sources.source(settings, name)
    if source.provider.needs_secret and not source.secrets and not source.unauthenticated:
        raise click.ClickException(f"{local_sources.missing_secret(name)}, or start `hookonce dev`")
    return source


def _target(settings: Settings, source: Source, url: str | None) -> str:
    target = url or local_sources.base_url(settings)
    if not re.match(r"https?://[^/]", target):
        raise click.UsageError(
            f"--url: {target!r} is not a URL; expected one like {local_sources.base_url(settings)}"
        )
    if urlsplit(target).path in {"", "/"}:
        target = f"{target.rstrip('/')}/hooks/{source.name}"
    return target


def _document(source: Source, options: Mapping[str, Any]) -> Document:
    """Make an event as it was asked for, with ids of its own."""
    try:
        document = documents.fresh(source.provider, options["kind"], datetime.now(UTC), options["event_id"])
    except LookupError as error:
        raise NotFound(str(error.args[0])) from None
    except ValueError as error:
        raise click.UsageError(f"--event-id: {error}") from None
    _change(document, options["removals"], options["changes"], edit=options["edit"])
    return replace(document, headers={**document.headers, **dict(_headers(options["headers"]))})


def _headers(said: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values. Raises: UsageError for what can't be a header."""
    for text in said:
        name, sep, value = text.partition("=")
        if not (sep and _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            raise click.UsageError(
                f"--header: {text!r} is not a header; expected one like x-shop-domain=a.example"
            )
        yield name.lower(), value


def _change(document: Document, removals: Sequence[str], changes: Sequence[str], *, edit: bool) -> None:
    """Remove, then set, then let it be edited."""
    option = "--remove"
    try:
        for path in removals:
            document.remove(path)
        option = "--set"
        for change in changes:
            document.set(change)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
    if not edit:
        return
    text = click.edit(document.text, extension=".txt" if document.form == "text" else ".json")
    if text is None:
        raise click.ClickException("the body was not saved, so nothing was sent")
    try:
        document.edited(text)
    except ValueError as error:
        raise click.ClickException(f"the saved body can't be sent: {error}") from None


def _send(
    source: Source, samples: Iterable[SampleDelivery], times: int, *, forge: bool, stale: bool
) -> Iterator[Answer]:
    """Send events of a source so many times each, each time signed again, as a sender's retries are."""
    provider = source.provider
    if stale and provider.tolerance is None:
        raise click.ClickException(
            f"{provider.name} signs no time, so nothing it sends is ever stale; leave out --stale"
        )
    secret = next(iter(source.secrets), "")
    if forge and not secret:
        raise click.ClickException(
            f"{source.name} has no secret, so nothing sent to it is ever forged; leave out --forge"
        )
    secret = wrong_secret(secret) if forge else secret
    with requests.Session() as session:
        session.trust_env = False  # a proxy or ~/.netrc is for other addresses
        for sample in samples:
            for _ in range(times):
                now = datetime.now(UTC) - (STALE_AGE if stale else timedelta(0))
                yield _answer(session, sample, _signed(sample, secret, now))


def _signed(sample: SampleDelivery, secret: str, now: datetime) -> Delivery:
    target = urlsplit(sample.target)
    try:
        return sample.document.delivery(secret, now, sample.source.url_of(target.path, target.query))
    except ValueError as error:
        raise click.ClickException(f"nothing to sign with: {error}") from None


def _answer(session: requests.Session, sample: SampleDelivery, delivery: Delivery) -> Answer:
    target = urlsplit(sample.target)._replace(query=urlsplit(delivery.url).query)  # it may hold the signature
    try:
        response = session.request(
            delivery.method,
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
    status, told_id = _reply_of(response)
    event_id, kind = _event(sample, delivery)
    return Answer(response.status_code, status, told_id or event_id, kind, sample.target)


def _event(sample: SampleDelivery, delivery: Delivery) -> tuple[str, str]:
    """Return the event's id and type as the ledger has them: the provider's words, which a sample's name may extend.

    A provider that can't read the body, or has a bug, has been heard of in the receiver's answer.
    """
    provider, document = sample.source.provider, sample.document
    try:
        decoded = provider.decode(delivery, sample.source.secrets) if provider.decode else delivery
        events = provider.events(decoded)
    except Rejected as refused:
        if not files.types(provider.name):
            tell(
                f"{sample.source.name} can't read this ({clean(refused.detail)}); there is no sample of "
                f"{provider.name}, so its body was made up: give what it reads by --set, as --set type=order.paid"
            )
        return document.event_id, document.type
    except Exception:  # noqa: BLE001  see above
        return document.event_id, document.type
    return (events[0].id, events[0].type) if events else (document.event_id, document.type)


def _reply_of(response: requests.Response) -> tuple[str, str | None]:
    """Read hookonce's own answers; of a reply in the sender's own form there is only its beginning."""
    try:
        document = response.json()
        if "code" in document:
            return str(document["code"]), None
        events = document["events"]
        return str(events[0]["status"] if len(events) == 1 else document["status"]), events[0]["event_id"]
    except (ValueError, LookupError, TypeError):
        return response.text.strip()[:60] or response.reason, None
