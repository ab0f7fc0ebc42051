"""`[alerts]`: reasons to raise an alert, and where to send it. Alerts are shown whether or not they are sent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator

from hookonce.receiver.config.secret_references import Reference, Unreadable
from hookonce.receiver.durations import parse_duration
from hookonce.receiver.source import TABLE

_OFF = "off"
_SMTP = "[alerts.mail] smtp"
_RATE = re.compile(r"(\d{1,6})/(\d{1,6}[smhdw])", re.ASCII)
_MAX_RATE_WINDOW = timedelta(days=7)  # activity is kept by the minute for a little longer
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Rate(NamedTuple):
    """So many within so long."""

    number: int
    within: timedelta


def parse_rate(text: object) -> Rate | None:
    """Read `20/10m`; None for `off`. Raises: ValueError saying what was expected."""
    if text == _OFF:
        return None
    parts = _RATE.fullmatch(text) if isinstance(text, str) else None
    found = Rate(int(parts[1]), parse_duration(parts[2])) if parts else Rate(0, timedelta())
    if not found.number or not timedelta(minutes=1) <= found.within <= _MAX_RATE_WINDOW:
        raise ValueError('expected how many within how long (1m to 7d), like "20/10m", or "off"')
    return found


def _span_or_off(text: object) -> timedelta | None:
    return None if text == _OFF else parse_duration(text)


_Rate = Annotated[Rate | None, BeforeValidator(parse_rate)]
_Span = Annotated[timedelta | None, BeforeValidator(_span_or_off)]


class Target(NamedTuple):
    """A destination of alerts as a worker needs it; `secret` signs a webhook, or is PagerDuty's key."""

    kind: str
    url: str
    secret: str = ""
    to: tuple[str, ...] = ()
    sender: str = ""


def _texts(text: object) -> object:
    return (text,) if isinstance(text, str) else text


@dataclass(frozen=True, kw_only=True)
class Chat:
    """An incoming webhook of a channel."""

    __pydantic_config__ = TABLE

    url: str = field(default="", repr=False)
    """reference to the webhook's URL, which is a secret"""


@dataclass(frozen=True, kw_only=True)
class PagerDuty:
    """A service of PagerDuty with an integration of its Events API v2."""

    __pydantic_config__ = TABLE

    key: str = field(default="", repr=False)
    """reference to the integration's key"""
    url: str = "https://events.pagerduty.com/v2/enqueue"
    """address of the Events API"""


@dataclass(frozen=True, kw_only=True)
class Mail:
    """Mail by SMTP; `smtp://` uses STARTTLS, and goes without only where there is no password."""

    __pydantic_config__ = TABLE

    to: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    """addresses of the recipients"""
    smtp: str = field(default="", repr=False)
    """reference to the server, like `smtps://user:password@mail.example.com`"""
    sender: str = ""
    """address that it is from; else the user of `smtp`, or the first recipient"""


@dataclass(frozen=True, kw_only=True)
class Alerts:
    """The keys of `[alerts]`."""

    __pydantic_config__ = TABLE

    urls: tuple[str, ...] = field(default=(), repr=False)
    """destinations of alerts, which are signed webhooks: URLs, or references to them"""
    secret: str = field(default="", repr=False)
    """reference to the `whsec_` secret that signs them"""
    slack: Chat | None = None
    """a channel of Slack"""
    teams: Chat | None = None
    """a channel of Microsoft Teams, by a workflow"""
    discord: Chat | None = None
    """a channel of Discord"""
    pagerduty: PagerDuty | None = None
    """a service of PagerDuty"""
    mail: Mail | None = None
    """recipients of mail"""
    with_text: bool = False
    """messages quote the error's text, with known secrets masked; it may quote what an event holds"""
    learn: bool = True
    """notice a source that is silent against its own rhythm"""
    signature_failures: _Rate = Rate(20, timedelta(minutes=10))
    """deliveries of a source that failed verification; `off` for never"""
    issues: bool = True
    """tell of an issue that is new, and of a fixed one that failed again"""
    dead_runs: _Rate = Rate(1, timedelta(hours=1))
    """events of a source that died; `off` for never"""
    oldest_due: _Span = timedelta(minutes=5)
    """how long an event may be due; `off` for never"""
    retried_for: _Span = timedelta(days=1)
    """how long an event may fail and be tried again; `off` for never"""
    breaker_open: _Span = timedelta(minutes=1)
    """how long a handler's circuit breaker may be open; `off` for never"""
    duplicates: _Rate = Rate(1000, timedelta(minutes=10))
    """duplicates of a source, if they are more than what is new; `off` for never"""
    conflicts: _Rate = Rate(5, timedelta(hours=1))
    """deliveries of a source with another body under a known id; `off` for never"""
    unreadable: _Rate = Rate(1, timedelta(hours=1))
    """genuine deliveries of a source that its adapter could not read; `off` for never"""
    lost_leases: _Rate = Rate(10, timedelta(minutes=10))
    """attempts of a source that could not end, their lease being lost; `off` for never"""
    never_came: _Span = timedelta(hours=1)
    """how long an event that its sender lists may be missing, a sender may not be asked, or a subscription not
    be renewed; `off` for never"""
    redis: _Span = timedelta(minutes=1)
    """how long Redis may be away; `off` for never"""

    @property
    def are_sent(self) -> bool:
        """Whether some target is configured, whichever process can resolve it."""
        return bool(self.urls or any(getattr(self, kind) for kind in _TABLES))

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets; one whose reference leads nowhere in this process has no `url`, which only a worker needs."""
        found = [Target("webhook", url, self.secret) for url in dict.fromkeys(filter(None, self.urls))]
        found += [Target(kind, chat.url) for kind in CHATS if (chat := getattr(self, kind))]
        if duty := self.pagerduty:
            found.append(Target("pagerduty", duty.url if duty.key else "", duty.key))
        if mail := self.mail:
            user = unquote(urlsplit(mail.smtp).username or "")
            sender = mail.sender or (user if "@" in user else "".join(mail.to[:1]))
            found.append(Target("mail", mail.smtp, to=mail.to, sender=sender))
        return tuple(found)

    @property
    def secrets(self) -> list[str]:
        """Everything of the targets that must not be shown."""
        passwords = [unquote(urlsplit(self.mail.smtp).password or "")] if self.mail else []
        urls = [each.url for each in self.targets if each.kind in CHATS]
        return [*filter(None, [self.secret, self.pagerduty.key if self.pagerduty else "", *urls, *passwords])]


CHATS: Final = ("slack", "teams", "discord")
_TABLES: Final = (*CHATS, "pagerduty", "mail")


def read_alerts(table: Alerts, environ: Mapping[str, str], mistakes: list[str]) -> Alerts:
    """Return the table with what its references name, adding to `mistakes`; one that leads nowhere is not a mistake."""

    def url(entry: str, setting: str) -> str:
        return _read_url(entry, environ, mistakes, setting)

    def secret(reference: str, setting: str) -> str:
        found = _resolved(reference, environ) if reference else ""
        if found is None:
            mistakes.append(f'{setting}: write "env:NAME" or "file:/path" instead of the secret itself')
        return found or ""

    read: dict[str, Any] = {"urls": tuple(url(entry, "[alerts] urls: one") for entry in table.urls)}
    if table.urls and not table.secret:
        mistakes.append(
            '[alerts] has urls and no secret to sign with; set secret = "env:NAME" to a whsec_ secret, '
            "one of `openssl rand -base64 32`, say"
        )
    read["secret"] = secret(table.secret, "[alerts] secret")
    for kind in CHATS:
        if chat := getattr(table, kind):
            read[kind] = replace(chat, url=url(chat.url, f"[alerts.{kind}] url"))
    if duty := table.pagerduty:
        key = secret(duty.key or "?", "[alerts.pagerduty] key")
        read["pagerduty"] = replace(duty, key=key, url=url(duty.url, "[alerts.pagerduty] url"))
    if mail := table.mail:
        if not mail.to:
            mistakes.append("[alerts.mail] to: expected the recipients' addresses")
        read["mail"] = replace(mail, smtp=url(mail.smtp, _SMTP))
    return replace(table, **read)


def _read_url(entry: str, environ: Mapping[str, str], mistakes: list[str], setting: str) -> str:
    """Return a URL, itself or what a reference names (it may hold a secret); '' if there is none here."""
    url = entry if "://" in entry else _resolved(entry, environ)
    try:
        parts = urlsplit(url or "")
        if setting == _SMTP:
            is_good = parts.scheme in {"smtp", "smtps"} and parts.port != 0
            is_good = is_good and not (url == entry and parts.password)
        else:
            is_good = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        is_good = url == "" or (is_good and bool(parts.hostname))
    except ValueError:
        is_good = False
    if is_good:
        return url or ""
    mistakes.append(
        f'{_SMTP}: expected smtp://HOST or smtps://HOST, and with a password in it a reference like "env:NAME" to that'
        if setting == _SMTP
        else f"{setting} is not an https:// URL (http:// on this machine only), nor a reference "
        'like "env:NAME" to one'
    )
    return ""


def _resolved(text: str, environ: Mapping[str, str]) -> str | None:
    """Return what a reference names, '' for what is not there, None for what is not a reference."""
    reference = Reference.parse(text)
    if reference is None:
        return None
    try:
        return reference.look_up(environ) or ""
    except Unreadable:
        return ""
