"""Delivers alerts: a handler of our own per target, so that each is tried again by itself, for an hour.

Each alert is sent in a thread. A target that does not answer within `TURN` holds up no other: its run is put off, and
finds the answer that came meanwhile. Where another process has the run by then, the target gets the alert twice, under
one id. A process that ends with its job waits for the answer.
A webhook is signed as Standard Webhooks say; its `webhook-id` is the alert's event id, the same on every attempt.
`messages` makes what the other kinds of targets take. No redirect is followed. An error names the host and what it
answered, and no URL: that may hold a secret.
"""

import hashlib
import json
import smtplib
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

import requests

from hookonce.jobs.alerts import messages
from hookonce.jobs.configured.origin import cycle_key
from hookonce.jobs.event import ReceivedEvent
from hookonce.jobs.handlers import GiveUp, Handler, Registry, RetryLater
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.providers.kit.signing.verdict import Sign
from hookonce.receiver.config.alerts import LOOPBACK, Alerts, Target
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.secret_references import why_absent
from hookonce.receiver.config.suggestions import ALERTS_SOURCE

TIMEOUT = (3.05, 10)
ATTEMPTS = 50
BACKOFF = (timedelta(seconds=5), timedelta(minutes=5))
TURN = timedelta(seconds=2)
"""How long an attempt waits for its target's answer, before other runs have their turn."""
PUT_OFF = timedelta(seconds=15)
"""How long at least a run is put off whose target has not answered yet: longer than `TIMEOUT`, so that it has then."""
TRIED_FOR = timedelta(hours=1)
"""How long a target that is away is tried; the attempts suffice for longer."""
ends_with_job = False
"""Whether this process ends with its job, and would take along what it is sending."""
_TODO = "set it, or remove the target"


def register(registry: Registry, alerts: Alerts) -> None:
    """Have a worker deliver alerts. Raises: `ConfigError` with every URL and secret of a target that is not there."""
    provider = load("standard_webhooks", (), None)
    if mistakes := list(_missing(alerts, provider)):
        raise ConfigError(mistakes)
    for target in alerts.targets:
        name = f"{ALERTS_SOURCE}.alert to {_called(target)}"
        if registry.named(name) is None:
            send = partial(deliver, target=target, sign=provider.sign)
            registry.add(
                Handler(name, ALERTS_SOURCE, "alert.*", send, ATTEMPTS, BACKOFF, timedelta(seconds=30))
            )


def _missing(alerts: Alerts, provider: Provider) -> Iterator[str]:
    if alerts.urls:
        try:
            if provider.check_secret:
                provider.check_secret(alerts.secret)
        except ValueError as error:
            yield f"[alerts] secret: {error or why_absent(alerts.secret)}; a worker signs with it"
        yield from (f"[alerts] urls: {why_absent(url)}; {_TODO}" for url in alerts.urls if not url)
    for target in alerts.targets:
        if not target.url:
            setting = {"mail": "smtp", "pagerduty": "key"}.get(target.kind, "url")
            yield f"[alerts.{target.kind}] {setting}: {why_absent(target.url)}; {_TODO}"


def _called(target: Target) -> str:
    """Return what a target is called in its handler's name, which outlives a change of its URL but for webhooks."""
    if target.kind != "webhook":
        return target.kind
    return f"{urlsplit(target.url).hostname} {hashlib.sha256(target.url.encode()).hexdigest()[:6]}"


def deliver(event: ReceivedEvent, _tx: object, *, target: Target, sign: Sign) -> dict[str, object]:
    """Send one alert to one target. Raises what came back; `GiveUp` where nobody wants any, or after `TRIED_FOR`.

    Raises `RetryLater` where nothing came back yet.
    """
    send = partial(_mail, event, target) if target.kind == "mail" else partial(_post, event, target, sign)
    key, now = cycle_key(event), datetime.now(UTC)
    found = _under_way.pop(key, None)
    began, sending = found or (now, _begun(send))
    age = now - event.received_at
    try:
        return sending.result(None if ends_with_job or age >= TRIED_FOR else TURN.total_seconds())
    except TimeoutError:
        for other, (since, sent) in list(_under_way.items()):
            if sent.done() and now - since > TRIED_FOR:  # another process has ended its run
                _under_way.pop(other, None)
        _under_way[key] = began, sending
        raise RetryLater(max(PUT_OFF, min(age, BACKOFF[1]))) from None
    except ConnectionError as error:
        if age < TRIED_FOR:
            raise
        raise GiveUp(f"{error}; tried for an hour") from None


_Sending = Future[dict[str, object]]
_under_way: dict[str, tuple[datetime, _Sending]] = {}
"""Alerts that are being sent, and since when, by the key of the run's cycle."""


def _begun(send: Callable[[], dict[str, object]]) -> _Sending:
    """Begin to send, in a thread that keeps no process from ending."""
    made = _Sending()

    def run() -> None:
        try:
            made.set_result(send())
        except BaseException as error:  # noqa: BLE001  the attempt that waits raises it
            made.set_exception(error)

    threading.Thread(target=run, daemon=True, name="hookonce-alert").start()
    return made


def _post(event: ReceivedEvent, target: Target, sign: Sign) -> dict[str, object]:
    host = urlsplit(target.url).hostname
    headers = {"content-type": "application/json", "user-agent": "hookonce"}
    if target.kind == "webhook":
        body = event.raw
        headers |= sign(body, target.secret, datetime.now(UTC), event_id=event.event_id)
    else:
        body = messages.body_of(messages.message_of(json.loads(event.raw)), target)
    try:
        answer = requests.post(
            target.url, data=body, headers=headers, timeout=TIMEOUT, allow_redirects=False, stream=True
        )
    except requests.RequestException as error:
        raise _unreached(host, "did not answer", error, "REQUESTS_CA_BUNDLE") from None
    answer.close()
    if answer.status_code == HTTPStatus.GONE:
        raise GiveUp(f"{host} answered 410: it wants no more alerts; take it out of [alerts]")
    if not 200 <= answer.status_code < 300:  # noqa: PLR2004  what success is
        raise ConnectionError(f"{host} answered {answer.status_code}; expected 2xx")
    return {"status": answer.status_code}


def _unreached(host: str | None, what: str, error: Exception, variable: str) -> ConnectionError:
    """Return the error of a target that is away, or whose certificate is refused; `variable` names authorities."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return ConnectionError(f"{host} {what}: {type(error).__name__}")
    return ConnectionError(
        f"the certificate of {host} is refused ({cause.verify_message}); expected one for this name, by a known "
        f"authority; correct the target, or name the authority's file in {variable}"
    )


def _mail(event: ReceivedEvent, target: Target) -> dict[str, object]:
    parts = urlsplit(target.url)
    host = parts.hostname or ""
    letter = messages.mail(messages.message_of(json.loads(event.raw)), target, event.event_id)
    try:
        with _connected(parts.scheme, host, parts.port) as server:
            is_encrypted = isinstance(server.sock, ssl.SSLSocket)
            if parts.password and (is_encrypted or host in LOOPBACK):
                server.login(unquote(parts.username or ""), unquote(parts.password))
            elif parts.password:
                raise GiveUp(f"{host} offers no STARTTLS, so no password is sent to it; use smtps://")
            refused = server.send_message(letter)
    except smtplib.SMTPResponseException as error:  # its text may quote the mail
        raise ConnectionError(f"{host} answered {error.smtp_code}; expected 250") from None
    except (OSError, smtplib.SMTPException) as error:
        raise _unreached(host, "did not take the mail", error, "SSL_CERT_FILE") from None
    return {"status": 250, "refused": len(refused)}


def _connected(scheme: str, host: str, port: int | None) -> smtplib.SMTP:
    """Return a connection to a mail server, encrypted where it can be."""
    context = ssl.create_default_context()
    if scheme == "smtps":
        return smtplib.SMTP_SSL(host, port or 465, timeout=TIMEOUT[1], context=context)
    server = smtplib.SMTP(host, port or 587, timeout=TIMEOUT[1])
    server.ehlo_or_helo_if_needed()
    if server.has_extn("starttls"):
        server.starttls(context=context)
    return server
