"""One source of the configuration: its table put together with its provider, and with the secrets that it names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.providers.kit.registry.chosen_ids import with_chosen_ids
from hookonce.providers.kit.registry.message_ids import with_message_ids
from hookonce.providers.kit.sender import TOO_MANY
from hookonce.receiver.config.addresses import address_of
from hookonce.receiver.config.secret_references import Reference, Unreadable, resolve, surroundings
from hookonce.receiver.config.suggestions import ALERTS_SOURCE
from hookonce.receiver.source import OPTIONS, Source

SOURCE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_DECLARED = frozenset({"hmac", "signed", "jwt"})
"""Providers that sign what the source says; a module says itself what repeats are (`Sender.holds_repeats`)."""
_PUBLIC_URL = re.compile(r"https?://[^/?#\s@]+(/[^?#\s]*)?")
_URL = re.compile(r"https?://[^/?#\s]+(/[^?#\s]*)?(\?[^#\s]*)?")
TESTS = "HOOKONCE_TESTS"
_LONGEST_TOLERANCE, _SHORTEST_ROUND = timedelta(days=30), timedelta(minutes=10)
SECRET_PREFIX = "HOOKONCE_SECRET__"  # noqa: S105  a variable's name


def table_of(sender: str, *references: str) -> Source:
    """Return the table of a source that has no other settings."""
    return TypeAdapter(Source).validate_python({"provider": sender, "secrets": references})


class Around(NamedTuple):
    """The surroundings of a source: the environment, and what [receiver] has for all sources.

    Without `need_secrets`, a secret that is not in this environment is not a mistake.
    """

    environ: Mapping[str, str]
    need_secrets: bool
    places: tuple[str, ...] = ()
    public_url: str = ""


def read_source(name: str, table: Source, around: Around, mistakes: list[str]) -> Source | None:
    """Return a source by its table, adding to `mistakes`; None if one makes it unusable."""
    environ = around.environ
    wrong: list[str] = []
    if not SOURCE_NAME.fullmatch(name):
        wrong.append("the name must be 1 to 63 of a-z 0-9 _ - and start with a letter or digit")
    if name == ALERTS_SOURCE:
        wrong.append("the name is kept for our own events; take another")
    missing = wrong if around.need_secrets else []
    provider = _provider(name, table, around.places, wrong)
    secrets = [each for text in table.references for each in _secrets(text, environ, wrong, missing)]
    table = replace(table, name=name, public_url=table.public_url or around.public_url)
    source = None
    if provider is not None:
        wrong += _mistakes(table, provider, need_secrets=around.need_secrets)
        wrong += _broken(secrets, provider)
        source = replace(
            table,
            provider=with_chosen_ids(
                provider if table.broker is None else with_message_ids(provider), table.chosen
            ),
            secrets=tuple(secret for _, secret in secrets),
            secret_names=tuple(name for name, _ in secrets),
            secret_notes=tuple(_notes(table.references, environ)),
            public_url=table.public_url.rstrip("/"),
            url=_url(table.url_reference, environ, wrong, missing),
            url_reference=table.url_reference if Reference.parse(table.url_reference) else "",
            broker=None if table.broker is None else _broker(table.broker, environ, wrong),
            unauthenticated=table.unauthenticated or table.authenticity == "queue",
            repeats=table.repeats or ("hold" if provider.holds_repeats else "run"),
            tests=table.tests or environ.get(TESTS) == "1",
            refuses_with=_refusal(table, provider),
        )
    mistakes += [
        f"source '{name}' {each}" if each.startswith("has ") else f"source '{name}': {each}" for each in wrong
    ]
    return source


def with_options(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return a file's table of a source with the sub-table that is named like its provider where `Source` has it."""
    sender = str(table.get("provider") or name).replace("-", "_")
    own = [key for key, value in table.items() if key.replace("-", "_") == sender and isinstance(value, dict)]
    return {(OPTIONS if key in own else key): value for key, value in table.items()}


def _provider(name: str, table: Source, places: tuple[str, ...], wrong: list[str]) -> Provider | None:
    sender = (table.sender or name).replace("-", "_")
    try:
        return load(sender, places, table.options)
    except (LookupError, ValueError, ImportError) as error:
        said = str(error.args[0] if error.args else error)
        wrong.append(said.replace(f"{sender}: ", f"in [sources.{name}.{sender}], ", 1))
        return None


def _secrets(
    text: str, environ: Mapping[str, str], wrong: list[str], missing: list[str]
) -> list[tuple[str, str]]:
    """Return the secrets that a reference names, each with what it is called: a variable of ours may hold several."""
    reference = Reference.parse(text)
    if reference is None:
        wrong.append('secrets are references; write "env:NAME" or "file:/path" instead of the secret itself')
        return []
    is_variable, name = reference.kind == "env", text.removesuffix("?")
    problem, is_needed = "is missing or empty", not reference.may_be_absent
    try:
        value = reference.look_up(environ)
    except Unreadable as error:
        value, problem, is_needed = None, str(error), True
    if value and is_variable and reference.place.startswith(SECRET_PREFIX):
        several = [part for each in value.split(",") if (part := each.strip())]
        marks = [f" ({n} of {len(several)})" if several[1:] else "" for n in range(1, len(several) + 1)]
        return [(name + mark, secret) for mark, secret in zip(marks, several, strict=True)]
    if not value and is_needed:
        missing.append(
            f"has no signing secret; set {reference.place} or name another in its secrets"
            if is_variable
            else f"secret file {reference.place} {problem}"
        )
    return [(name, value)] if value else []


def _broken(secrets: list[tuple[str, str]], provider: Provider) -> Iterator[str]:
    for name, secret in secrets:
        try:
            if provider.check_secret:
                provider.check_secret(secret)
        except ValueError as error:
            yield f"the secret in {name} is not one: {error}"


def _notes(references: tuple[str, ...], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield what stands around secrets, by their references; what can't be read is a mistake already."""
    for reference in filter(None, map(Reference.parse, references)):
        try:
            note = surroundings(reference.written(environ) or "")
        except Unreadable:
            continue
        if note:
            yield f"the secret in {reference.kind}:{reference.place} {note}"


def _broker(text: str, environ: Mapping[str, str], wrong: list[str]) -> str:
    """Return the address of a broker, '' where its reference leads nowhere in this environment."""
    found = address_of(text, environ, wrong, "from")
    if found is not None and (found.kind == "https" or "exchange" in found.options):
        wrong.append("from: expected a subject or a queue, as in nats://host:4222/orders")
    return found.written if found else ""


def _url(text: str, environ: Mapping[str, str], wrong: list[str], missing: list[str]) -> str:
    """Return the URL as its sender knows it, written or by reference; it may be a secret, and is never quoted."""
    try:
        url = resolve(text, environ) if Reference.parse(text) else text
    except ValueError as error:
        missing.append(f"url: {error}")
        return ""
    if url and not _URL.fullmatch(url):
        wrong.append('url is not a whole URL; expected one like "https://hooks.example.com/in/sms"')
    return url


def _refusal(table: Source, provider: Provider) -> int | None:
    """Return the status that what is beyond a limit is refused with; None where it is put off instead.

    Unless the operator says, only a sender is refused that is known to come again and to leave the endpoint alone.
    """
    if table.over_limit == "hold" or not (table.rate or table.quota):
        return None
    return provider.may_be_refused_with or (TOO_MANY if table.over_limit else None)


def _mistakes(table: Source, provider: Provider, *, need_secrets: bool) -> Iterator[str]:
    """Yield what means nothing for this sender, or beside another setting."""
    yield from _unproven(table, provider, need_secrets=need_secrets)
    yield from _beyond_limits(table, provider)
    if table.asks:
        yield from _unanswerable(table, provider)
    if table.accept and provider.mode is None:
        yield f"has accept, but {provider.name} does not tell test events from live ones; remove it"
    if table.tolerance and provider.tolerance is None:
        yield f"has tolerance, and {provider.name} signs no time; remove it"
    if table.tolerance and table.tolerance > _LONGEST_TOLERANCE:
        yield "tolerance is longer than 30d; expected at most that: older deliveries are captured ones"
    for named, is_set in (("keep_body = false", not table.keep_body), ("redact", table.redact)):
        if table.quarantine and is_set:
            yield f"has {named} and quarantine, but what is in quarantine is whole; remove one of them"
    # Never guess our URL from a request: its Host is whatever somebody wrote there.
    if table.public_url and not _PUBLIC_URL.fullmatch(table.public_url):
        yield 'public_url is not a URL; expected one like "https://hooks.example.com"'
    if provider.signs_url and not (table.public_url or table.url_reference):
        yield (
            f"has no public_url, and {provider.name} signs the URL that it sends to; set it here or in "
            '[receiver] to what precedes /hooks/ there, like "https://hooks.example.com", or the whole as url'
        )


def _unproven(table: Source, provider: Provider, *, need_secrets: bool) -> Iterator[str]:
    """Require that the table says that anyone may send, or what repeats are, where the sender proves too little."""
    is_open = table.unauthenticated
    if table.authenticity == "queue":
        if table.broker is None:
            yield 'has authenticity = "queue" and no from; set from, or remove it'
    elif is_open and not provider.unauthenticated:
        yield f"has unauthenticated = true, but {provider.name} proves who it is; remove that"
    elif provider.unauthenticated and not is_open and need_secrets and not table.references:
        yield (  # without need of secrets, a variable may name one elsewhere
            f"has no secrets, and {provider.name} proves nothing; name one, which then ends its URL "
            f"(/hooks/{table.name}/<secret>), or let anyone send with unauthenticated = true"
        )
    is_bound = provider.id_is_signed or provider.tolerance is not None or table.authenticity == "queue"
    if provider.name in _DECLARED and not (is_bound or provider.body_is_unsigned or table.repeats):
        yield (
            "signs neither its id nor a time, so a captured delivery can be sent again under another id; write "
            'repeats = "hold" where no two of its events have equal bodies, else repeats = "run"'
        )


def _beyond_limits(table: Source, provider: Provider) -> Iterator[str]:
    is_limited = table.rate or table.quota
    if table.over_limit and not is_limited:
        yield "has over_limit and neither rate nor quota; set one, or remove it"
    if table.over_limit != "refuse" or not is_limited:
        return
    if provider.disables_after:
        yield (
            f'has over_limit = "refuse", but {provider.name} disables endpoints ({provider.disables_after}); '
            'set "hold", so that all is accepted and put off'
        )
    if provider.retries_on is not None and not {TOO_MANY, 503} & set(provider.retries_on):
        yield (
            f'has over_limit = "refuse", but {provider.name} does not send again what is answered 429 or 503; '
            'set "hold", so that nothing is lost'
        )


def _unanswerable(table: Source, provider: Provider) -> Iterator[str]:
    """Yield what is wrong with the questions of a source to its sender."""
    listing, renewal, is_listed = provider.listing, provider.renewal, table.reconcile or table.api
    if Reference.parse(table.api_key) is None:
        yield 'needs api_key where it asks its sender; write api_key = "env:NAME" or "file:/path"'
    if is_listed and listing is None:
        yield f"has reconcile or api, and {provider.name} is not asked for what it sent; remove them"
    if table.renew and renewal is None:
        yield f"has renew, and {provider.name} has no subscriptions that are renewed; remove it"
    if table.reconcile and table.reconcile < _SHORTEST_ROUND:
        yield "reconcile is shorter than 10m; expected that or longer"
    if listing and is_listed and not re.fullmatch(listing.api, table.api):
        expected = f"expected {listing.api}" if listing.api else "remove it"
        yield f"api is not an address of {provider.name}'s list; {expected}"
    if listing and listing.redeliver and table.id and table.reconcile:
        yield "has reconcile and id, but its sender's list has its own ids only; remove one of them"
    if table.renew and not (table.url_reference or table.public_url).startswith("https://"):
        yield "has renew and no https URL for its sender; set public_url"
    resources = [each.resource for each in table.renew]
    if len(set(resources)) < len(resources):
        yield "renew names a resource twice"
    yield from (
        f"renew names {each!r}; expected {renewal.resource}"
        for each in resources
        if renewal and not re.fullmatch(renewal.resource, each)
    )
