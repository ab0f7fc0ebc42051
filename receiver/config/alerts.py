"""`[alerts]`: reasons to raise an alert, and where to send it. Alerts are shown whether or not they are sent."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Annotated, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from hookonce.receiver.config.secret_references import Lookup, WorkersSecret, of_workers
from hookonce.receiver.durations import parse_duration
from hookonce.receiver.source import TABLE

_OFF = "off"
_RATE = re.compile(r"(\d{1,6})/(\d{1,6}[smhdw])", re.ASCII)
_MAX_RATE_WINDOW = timedelta(days=7)  # activity is kept by the minute for a little longer
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_CHATS: Final = ("slack", "teams", "discord")


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


def _url(
    text: str,
    info: ValidationInfo[Lookup],
    schemes: frozenset[str],
    expected: str,
    *,
    is_secret: bool = False,
) -> str:
    """Return a URL, itself or what a reference names; '' if there is none here.

    One that is a secret is given by reference, unless it is of this machine.
    """
    try:
        url = text if "://" in text else of_workers(text, info)
        parts = urlsplit(url)
        is_good = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
        is_open = parts.scheme == "http" and parts.hostname not in LOOPBACK
        is_secret = (
            bool(parts.password) if "smtp" in schemes else is_secret and parts.hostname not in LOOPBACK
        )
    except ValueError:
        raise ValueError(expected) from None
    if url and (not is_good or is_open or (is_secret and url == text)):
        raise ValueError(expected)
    return url


_WEB = partial(
    _url,
    schemes=frozenset({"http", "https"}),
    expected='expected an https:// URL (http:// on this machine only), or a reference like "env:NAME" to one',
)
_WEBHOOK = partial(
    _WEB,
    expected='expected a reference like "env:NAME" to an https:// URL, which is a secret',
    is_secret=True,
)
_SMTP = partial(
    _url,
    schemes=frozenset({"smtp", "smtps"}),
    expected="expected smtp://HOST or smtps://HOST, and with a password in it a reference "
    'like "env:NAME" to that',
)
WebUrl = Annotated[str, AfterValidator(_WEB)]


def _signing(text: str, info: ValidationInfo[Lookup]) -> str:
    if text:
        return of_workers(text, info)
    if info.data.get("urls"):
        raise ValueError(
            'urls has targets and there is no secret to sign with; set it to "env:NAME" of a whsec_ secret, '
            "one of `openssl rand -base64 32`, say"
        )
    return ""


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

    url: Annotated[str, AfterValidator(_WEBHOOK), Field(validate_default=True)] = field(
        default="", repr=False
    )
    """reference to the webhook's URL, which is a secret"""


@dataclass(frozen=True, kw_only=True)
class PagerDuty:
    """A service of PagerDuty with an integration of its Events API v2."""

    __pydantic_config__ = TABLE

    key: Annotated[WorkersSecret, Field(validate_default=True)] = field(default="", repr=False)
    """reference to the integration's key"""
    url: WebUrl = "https://events.pagerduty.com/v2/enqueue"
    """address of the Events API"""


@dataclass(frozen=True, kw_only=True)
class Mail:
    """Mail by SMTP; `smtp://` uses STARTTLS, and goes without only where there is no password."""

    __pydantic_config__ = TABLE

    to: Annotated[tuple[str, ...], BeforeValidator(_texts), Field(min_length=1, validate_default=True)] = ()
    """addresses of the recipients"""
    smtp: Annotated[str, AfterValidator(_SMTP), Field(validate_default=True)] = field(default="", repr=False)
    """reference to the server, like `smtps://user:password@mail.example.com`"""
    sender: str = ""
    """address that it is from; else the user of `smtp`, or the first recipient"""


@dataclass(frozen=True, kw_only=True)
class Alerts:
    """The keys of `[alerts]`."""

    __pydantic_config__ = TABLE

    urls: tuple[WebUrl, ...] = field(default=(), repr=False)
    """destinations of alerts, which are signed webhooks: URLs, or references to them"""
    secret: Annotated[str, AfterValidator(_signing), Field(validate_default=True)] = field(
        default="", repr=False
    )
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
        return bool(self.urls or any(getattr(self, kind) for kind in (*_CHATS, "pagerduty", "mail")))

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets; one whose reference leads nowhere in this process has no `url`, which only a worker needs."""
        found = [Target("webhook", url, self.secret) for url in dict.fromkeys(filter(None, self.urls))]
        found += [Target(kind, chat.url) for kind in _CHATS if (chat := getattr(self, kind))]
        if duty := self.pagerduty:
            found.append(Target("pagerduty", duty.url if duty.key else duty.key, duty.key))
        if mail := self.mail:
            user = unquote(urlsplit(mail.smtp).username or "")
            sender = mail.sender or (user if "@" in user else "".join(mail.to[:1]))
            found.append(Target("mail", mail.smtp, to=mail.to, sender=sender))
        return tuple(found)

    @property
    def secrets(self) -> list[str]:
        """Everything of the targets that must not be shown."""
        passwords = [unquote(urlsplit(self.mail.smtp).password or "")] if self.mail else []
        urls = [each.url for each in self.targets if each.kind in _CHATS]
        return [*filter(None, [self.secret, self.pagerduty.key if self.pagerduty else "", *urls, *passwords])]
