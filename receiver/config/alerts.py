"""`[alerts]`: reasons to raise an alert, and where to send it. Alerts are shown whether or not they are sent."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import timedelta
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass

from hookonce.receiver.config.durations import parse_duration
from hookonce.receiver.config.file_mistakes import TABLE
from hookonce.receiver.config.secret_references import Reference, Unreadable

_OFF = "off"
_RATE = re.compile(r"(\d{1,6})/(\d{1,6}[smhdw])", re.ASCII)
_MAX_RATE_WINDOW = timedelta(days=7)  # activity is kept by the minute for a little longer
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Rate(NamedTuple):
    """So many within so long."""

    number: int
    within: timedelta


def parse_rate(text: object) -> Rate | None:
    """Read `20/10m`; None for `off`. Raises: ValueError saying what was expected."""
    if text == _OFF or text is None or isinstance(text, Rate):
        return text if isinstance(text, Rate) else None
    parts = _RATE.fullmatch(text) if isinstance(text, str) else None
    found = Rate(int(parts[1]), parse_duration(parts[2])) if parts else Rate(0, timedelta())
    if not found.number or not timedelta(minutes=1) <= found.within <= _MAX_RATE_WINDOW:
        raise ValueError('expected how many within how long (1m to 7d), like "20/10m", or "off"')
    return found


def _span_or_off(text: object) -> timedelta | None:
    return text if isinstance(text, timedelta) else None if text in {_OFF, None} else parse_duration(text)


_Rate = Annotated[Rate | None, BeforeValidator(parse_rate)]
_Span = Annotated[timedelta | None, BeforeValidator(_span_or_off)]


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Alerts:
    """The keys of `[alerts]`."""

    urls: tuple[str, ...] = field(default=(), repr=False)
    """destinations of alerts, which are signed webhooks: URLs, or references to them"""
    secret: str = field(default="", repr=False)
    """reference to the `whsec_` secret that signs them"""
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
        """Whether some URL is configured, whichever process can resolve it."""
        return bool(self.urls)

    @property
    def destinations(self) -> tuple[str, ...]:
        """The URLs that this process could resolve; only a worker needs them, and `secret`."""
        return tuple(filter(None, self.urls))


def read_alerts(table: Alerts, environ: Mapping[str, str], mistakes: list[str]) -> Alerts:
    """Return the table with what its references name, adding to `mistakes`; one that leads nowhere is not a mistake."""
    urls = tuple(_read_url(entry, environ, mistakes) for entry in table.urls)
    if urls and not table.secret:
        mistakes.append(
            '[alerts] has urls and no secret to sign with; set secret = "env:NAME" to a whsec_ secret, '
            "one of `openssl rand -base64 32`, say"
        )
    secret = _resolved(table.secret, environ) if table.secret else ""
    if secret is None:
        mistakes.append('[alerts] secret: write "env:NAME" or "file:/path" instead of the secret itself')
    return replace(table, urls=urls, secret=secret or "")


def _read_url(entry: str, environ: Mapping[str, str], mistakes: list[str]) -> str:
    """Return a URL, itself or what a reference names (it may hold a secret); '' if there is none here."""
    url = entry if "://" in entry else _resolved(entry, environ)
    if url == "":
        return ""
    try:
        parts = urlsplit(url or "")
        is_good = bool(parts.hostname) and (
            parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        )
    except ValueError:
        is_good = False
    if not is_good:
        mistakes.append(
            "[alerts] urls: one is not an https:// URL (http:// on this machine only), nor a reference "
            'like "env:NAME" to one'
        )
        return ""
    return url or ""


def _resolved(text: str, environ: Mapping[str, str]) -> str | None:
    """Return what a reference names, '' for what is not there, None for what is not a reference."""
    reference = Reference.parse(text)
    if reference is None:
        return None
    try:
        return reference.look_up(environ) or ""
    except Unreadable:
        return ""
