"""One source of the configuration: its provider, its options, and its secrets by reference."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.reading.json_paths import Step, parse
from hookonce.providers.kit.registry import load
from hookonce.providers.kit.registry.chosen_ids import ChosenIds, with_chosen_ids
from hookonce.providers.kit.registry.message_ids import with_message_ids
from hookonce.receiver.config import source_choices
from hookonce.receiver.config.addresses import address_of
from hookonce.receiver.config.durations import parse_duration
from hookonce.receiver.config.quarantine import read_quarantine
from hookonce.receiver.config.rates import parse_limit
from hookonce.receiver.config.secret_references import Reference, Unreadable, resolve, surroundings
from hookonce.receiver.config.sender_api import read_renewed, sender_api_mistakes
from hookonce.receiver.config.suggestions import ALERTS_SOURCE, did_you_mean
from hookonce.receiver.source import Limit, Quarantine, Renewed, SenderApi, Source

SOURCE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_DECLARED = frozenset({"hmac", "signed", "jwt"})
"""Providers that sign what the source says; a module says itself what repeats are (`Sender.holds_repeats`)."""
_PUBLIC_URL = re.compile(r"https?://[^/?#\s@]+(/[^?#\s]*)?")
_URL = re.compile(r"https?://[^/?#\s]+(/[^?#\s]*)?(\?[^#\s]*)?")
TESTS = "HOOKONCE_TESTS"
_LONGEST_TOLERANCE = timedelta(days=30)
SECRET_PREFIX = "HOOKONCE_SECRET__"  # noqa: S105  a variable's name


class SourceTable(BaseModel):
    """The keys of `[sources.NAME]`; besides, a sub-table named like the provider holds its options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    provider: str | None = None
    """the sender's; the source's own name by default"""
    secrets: tuple[str, ...] = ()
    """references; several while you rotate"""
    from_: Annotated[str | None, Field(alias="from")] = None
    """[address of a broker](../how-to/consumers.md) that `hookonce consume` takes its deliveries from, or a reference
    to one; the source has no URL then"""
    authenticity: Literal["sender", "queue"] = "sender"
    """`"queue"`: who may write to the queue may send; the sender's signature is not asked for"""
    repeats: Literal["run", "hold"] | None = None
    """`"hold"`: a known body under a new, unsigned id waits for a person; `"run"`: it runs; unset: as [the
    senders' page](../providers.md) says of the sender"""
    conflicts: Literal["accept", "reject"] = "accept"
    """`"reject"`: answer 409 to another body under a known id"""
    window: Annotated[float, Field(gt=0, le=30 * 86400)] = 3600
    """seconds that Redis remembers an id; the ledger far longer"""
    accept: Literal["live", "test"] | None = None
    """`"live"`: events of its sender's test mode are kept as ignored, and no handler gets them"""
    public_url: str | None = None
    """as in `[receiver]`, for this source alone"""
    url: str | None = None
    """the whole URL that its sender posts to, where a proxy rewrites the path: signatures that cover a URL
    are verified with it (and with the request's query, where it has none); a reference, like a secret,
    where there are credentials in it"""
    max_body: Annotated[int | None, Field(ge=1024, le=100 << 20)] = None
    """bytes of a delivery; 413 beyond; by default the sender's own largest, else as in `[receiver]`"""
    tolerance: Annotated[timedelta | None, BeforeValidator(parse_duration)] = None
    """how old a signed time may be, if not as old as [the senders' page](../providers.md) says: for so long
    whoever has captured a delivery can send it again, and it must be a known id by then"""
    unauthenticated: bool = False
    """let anyone send; only where the sender proves nothing anyway"""
    redact: tuple[str, ...] = ()
    """paths in bodies, like `$.card.number`, that are never stored"""
    quarantine: Annotated[Quarantine | None, BeforeValidator(read_quarantine)] = None
    """keep rejected deliveries whole, sealed: `true`, or a table with bounds"""
    expect_every: Annotated[timedelta | None, BeforeValidator(parse_duration)] = None
    """a longer silence raises an alert; without it, the rhythm is learned"""
    tests: bool = False
    """let administrators send test events (`event.is_test`); `hookonce dev` always does"""
    id: Annotated[tuple[str, ...], BeforeValidator(source_choices.id_places)] = ()
    """places that tell events apart, instead of the sender's id: `["$.order.id", "$.status"]`"""
    account: str = ""
    """the place of an event's account, like `$.account`"""
    scope_ids_by_account: bool = False
    """an id of two accounts is two events"""
    keep_body: bool = True
    """`false`: a body is gone as soon as each handler has succeeded"""
    keep_events: Annotated[timedelta | None, BeforeValidator(source_choices.parse_horizon)] = None
    """how long its ids are known, or `"forever"`; as in `[receiver]` by default"""
    rate: Annotated[Limit | None, BeforeValidator(parse_limit)] = None
    """deliveries that may come, like `600/m` (s, m, h or d)"""
    quota: Annotated[Limit | None, BeforeValidator(parse_limit)] = None
    """events that may come, like `1000000/d`; a batch has many"""
    api_key: str | None = None
    """reference to a key of the sender's API, for `reconcile` and `renew`; only the sweep looks it up"""
    api: str = ""
    """address of what is asked there, of senders that have one for each hook: [how](../how-to/reconcile.md)"""
    reconcile: Annotated[timedelta | None, BeforeValidator(parse_duration)] = None
    """how often its sender is asked what it sent, and for what is missing"""
    renew: Annotated[tuple[Renewed, ...], BeforeValidator(read_renewed)] = ()
    """subscriptions that the sweep makes and renews, as tables with `resource`, `changes` and `lasts`:
    [how](../how-to/renew.md)"""
    over_limit: Literal["hold", "refuse"] | None = None
    """beyond these: `"hold"` accepts and puts off; by default `"refuse"` only where that is safe"""


_SAME = SourceTable.model_fields.keys() & Source.__dataclass_fields__.keys()
"""Settings that a source has as its table says them."""


class SourceReader:
    """Reads one source's table into a `Source`, adding to the list of mistakes."""

    def __init__(
        self,
        name: str,
        table: SourceTable,
        environ: Mapping[str, str],
        mistakes: list[str],
        *,
        need_secrets: bool,
    ) -> None:
        self._need_secrets = need_secrets
        self._name = name
        self._table = table
        self._environ = environ
        self._mistakes = mistakes

    def read(self, places: tuple[str, ...], public_url: str) -> Source | None:
        """Return the source, or None if a mistake makes it unusable."""
        if not SOURCE_NAME.fullmatch(self._name):
            self._mistake("the name must be 1 to 63 of a-z 0-9 _ - and start with a letter or digit")
        if self._name == ALERTS_SOURCE:
            self._mistake("the name is kept for our own events; take another")
        provider, table = self._provider(places), self._table
        resolved = [(reference, self._resolve(reference)) for reference in table.secrets]
        if provider is None:
            return None
        self._check_proof(provider)
        self._check_settings(provider)
        self._check_url(provider, public_url)
        chosen, refuses_with, asked = self._choices(provider, public_url)
        secrets = self._checked_secrets(provider, resolved)
        broker = None if table.from_ is None else self._broker(table.from_)
        own_ids = with_message_ids(provider) if broker is not None else provider
        found: dict[str, Any] = {
            "name": self._name,
            "provider": with_chosen_ids(own_ids, chosen),
            "broker": broker,
            "unauthenticated": table.unauthenticated or table.authenticity == "queue",
            "secrets": tuple(secret for _, secret in secrets),
            "secret_names": tuple(name for name, _ in secrets),
            "repeats": table.repeats or ("hold" if provider.holds_repeats else "run"),
            "window": timedelta(seconds=table.window),
            "public_url": public_url.rstrip("/"),
            "redact": self._redact(),
            "tests": table.tests or self._environ.get(TESTS) == "1",
            "references": table.secrets,
            "chosen": chosen,
            "refuses_with": refuses_with,
            "secret_notes": tuple(self._notes()),
            "url": self._url(),
            "sender_api": asked,
            "url_reference": table.url if table.url and Reference.parse(table.url) else "",
        }
        return Source(**{name: getattr(table, name) for name in _SAME} | found)

    def _choices(self, provider: Provider, public_url: str) -> tuple[ChosenIds, int | None, SenderApi | None]:
        """Return where ids are, the status beyond a limit, and what the sender is asked."""
        table, wrong = self._table, list[str]()
        chosen = source_choices.checked_ids(
            ChosenIds(table.id, table.account, table.scope_ids_by_account), wrong
        )
        limited = bool(table.rate or table.quota)
        refuses_with = source_choices.refusal(table.over_limit, provider, wrong, limited=limited)
        asked = SenderApi(table.api_key or "", table.api.rstrip("/"), table.reconcile, table.renew)
        if any(asked):
            wrong += sender_api_mistakes(asked, provider, table.url or public_url, own_ids=bool(table.id))
        for text in wrong:
            self._mistake(text)
        return chosen, refuses_with, asked if any(asked) else None

    def _checked_secrets(
        self, provider: Provider, resolved: list[tuple[str, list[str]]]
    ) -> list[tuple[str, str]]:
        """Return each secret below its reference; of several in one variable, its number too."""
        found = []
        for reference, values in resolved:
            for n, secret in enumerate(values, 1):
                name = reference.removesuffix("?") + (f" ({n} of {len(values)})" if values[1:] else "")
                found.append((name, secret))
                try:
                    if provider.check_secret:
                        provider.check_secret(secret)
                except ValueError as error:
                    self._mistake(f"the secret in {name} is not one: {error}")
        return found

    def _broker(self, text: str) -> str:
        """Return the address of a broker, '' where its reference leads nowhere in this environment."""
        wrong: list[str] = []
        found = address_of(text, self._environ, wrong, "from")
        if found is not None and (found.kind == "https" or "exchange" in found.options):
            wrong.append("from: expected a subject or a queue, as in nats://host:4222/orders")
        for each in wrong:
            self._mistake(each)
        return found.written if found else ""

    def _notes(self) -> Iterator[str]:
        """Yield what stands around the secrets, by their references; what can't be read is a mistake already."""
        for reference in map(Reference.parse, self._table.secrets):
            with suppress(Unreadable):
                written = (reference.written(self._environ) or "") if reference else ""
                if reference and (note := surroundings(written)):
                    yield f"the secret in {reference.kind}:{reference.place} {note}"

    def _redact(self) -> tuple[tuple[Step, ...], ...]:
        parsed = []
        for path in self._table.redact:
            try:
                parsed.append(parse(path))
            except ValueError as error:
                self._mistake(f"redact: {error}")
        return tuple(parsed)

    def _check_proof(self, provider: Provider) -> None:
        """Require that the table says that anyone may send, or what repeats are, where the sender proves too little."""
        table, is_open = self._table, self._table.unauthenticated
        if table.authenticity == "queue":
            if table.from_ is None:
                self._mistake('has authenticity = "queue" and no from; set from, or remove it')
        elif is_open and not provider.unauthenticated:
            self._mistake(f"has unauthenticated = true, but {provider.name} proves who it is; remove that")
        elif provider.unauthenticated and not is_open and self._need_secrets and not table.secrets:
            self._mistake(  # without need of secrets, a variable may name one elsewhere
                f"has no secrets, and {provider.name} proves nothing; name one, which then ends its URL "
                f"(/hooks/{self._name}/<secret>), or let anyone send with unauthenticated = true"
            )
        is_bound = provider.id_is_signed or provider.tolerance is not None or table.authenticity == "queue"
        if provider.name in _DECLARED and not (is_bound or provider.body_is_unsigned or table.repeats):
            self._mistake(
                "signs neither its id nor a time, so a captured delivery can be sent again under another id; write "
                'repeats = "hold" where no two of its events have equal bodies, else repeats = "run"'
            )

    def _check_settings(self, provider: Provider) -> None:
        """Find settings that mean nothing for this sender, or beside another one."""
        table = self._table
        if table.accept and provider.mode is None:
            self._mistake(
                f"has accept, but {provider.name} does not tell test events from live ones; remove it"
            )
        if table.tolerance and provider.tolerance is None:
            self._mistake(f"has tolerance, and {provider.name} signs no time; remove it")
        if table.tolerance and table.tolerance > _LONGEST_TOLERANCE:
            self._mistake(
                "tolerance is longer than 30d; expected at most that: older deliveries are captured ones"
            )
        for named, is_set in (("keep_body = false", not table.keep_body), ("redact", table.redact)):
            if table.quarantine and is_set:
                self._mistake(
                    f"has {named} and quarantine, but what is in quarantine is whole; remove one of them"
                )

    def _check_url(self, provider: Provider, public_url: str) -> None:
        """Never guess our URL from a request: its Host is whatever somebody wrote there."""
        if public_url and not _PUBLIC_URL.fullmatch(public_url):
            self._mistake('public_url is not a URL; expected one like "https://hooks.example.com"')
        if not public_url and provider.signs_url and not self._table.url:
            self._mistake(
                f"has no public_url, and {provider.name} signs the URL that it sends to; set it here or in "
                '[receiver] to what precedes /hooks/ there, like "https://hooks.example.com", or the whole as url'
            )

    def _url(self) -> str:
        """Return the URL as its sender knows it, written or by reference; it may be a secret, and is never quoted."""
        url = self._table.url or ""
        try:
            url = resolve(url, self._environ) if Reference.parse(url) else url
        except ValueError as error:
            if self._need_secrets:
                self._mistake(f"url: {error}")
            return ""
        if url and not _URL.fullmatch(url):
            self._mistake('url is not a whole URL; expected one like "https://hooks.example.com/in/sms"')
        return url

    def _provider(self, places: tuple[str, ...]) -> Provider | None:
        name = (self._table.provider or self._name).replace("-", "_")
        options = self._options(name)
        try:
            return load(name, places, options)
        except (LookupError, ValueError, ImportError) as error:
            said = str(error.args[0] if error.args else error)
            self._mistake(said.replace(f"{name}: ", f"in [sources.{self._name}.{name}], ", 1))
            return None

    def _options(self, provider: str) -> dict[str, Any] | None:
        """Return the sub-table named like the provider; any other unknown key is a mistake."""
        options: dict[str, Any] | None = None
        for key, value in (self._table.model_extra or {}).items():
            if key.replace("-", "_") == provider and isinstance(value, dict):
                options = value
            else:
                known = [*SourceTable.model_fields, provider]
                self._mistake(f"has no setting '{key}'{did_you_mean(key, known, 'it has')}")
        return options

    def _resolve(self, text: str) -> list[str]:
        """Return the secrets that a reference names: a variable of ours may hold several."""
        reference = Reference.parse(text)
        if reference is None:
            self._mistake(
                'secrets are references; write "env:NAME" or "file:/path" instead of the secret itself'
            )
            return []
        wrong, is_needed = "is missing or empty", not reference.may_be_absent
        try:
            value = reference.look_up(self._environ)
        except Unreadable as error:
            value, wrong, is_needed = None, str(error), True
        if value:
            is_ours = reference.kind == "env" and reference.place.startswith(SECRET_PREFIX)
            return [part for each in value.split(",") if (part := each.strip())] if is_ours else [value]
        if is_needed and self._need_secrets:
            self._mistake(
                f"has no signing secret; set {reference.place} or name another in its secrets"
                if reference.kind == "env"
                else f"secret file {reference.place} {wrong}"
            )
        return []

    def _mistake(self, text: str) -> None:
        self._mistakes.append(
            f"source '{self._name}' {text}" if text.startswith("has ") else f"source '{self._name}': {text}"
        )
