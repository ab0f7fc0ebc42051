"""Delivers alerts: a handler of our own per URL, so that each is tried again by itself.

A POST signed as Standard Webhooks say; its `webhook-id` is the alert's event id, the same on every attempt.
No redirect is followed. An error names the host only: a URL may hold a secret.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

import requests

from hookonce.jobs.event import ReceivedEvent
from hookonce.jobs.handlers import GiveUp, Handler, Registry
from hookonce.providers.kit.registry import load
from hookonce.providers.kit.signing.verdict import Sign
from hookonce.receiver.config.alerts import Alerts
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.suggestions import ALERTS_SOURCE

TIMEOUT = (3.05, 10)
ATTEMPTS = 14
BACKOFF = (timedelta(seconds=5), timedelta(hours=1))


def register(registry: Registry, alerts: Alerts) -> None:
    """Have a worker deliver alerts. Raises: `ConfigError` if it has URLs and no usable secret to sign with."""
    if not alerts.are_sent:
        return
    provider = load("standard_webhooks", (), None)
    try:
        if provider.check_secret:
            provider.check_secret(alerts.secret)
    except ValueError as error:
        raise ConfigError([f"[alerts] secret: {error or 'is not set'}; a worker signs with it"]) from None
    if not alerts.destinations:
        raise ConfigError(["[alerts] urls: none of the references leads to a URL here; a worker needs them"])
    for url in dict.fromkeys(alerts.destinations):
        name = f"{ALERTS_SOURCE}.alert to {urlsplit(url).hostname} {hashlib.sha256(url.encode()).hexdigest()[:6]}"
        if registry.named(name) is None:
            send = partial(deliver, url=url, sign=provider.sign, secret=alerts.secret)
            registry.add(
                Handler(name, ALERTS_SOURCE, "alert.*", send, ATTEMPTS, BACKOFF, timedelta(seconds=30))
            )


def deliver(event: ReceivedEvent, _tx: object, *, url: str, sign: Sign, secret: str) -> dict[str, int]:
    """POST one alert. Raises what says where it went and what came back; `GiveUp` where nobody wants any."""
    host = urlsplit(url).hostname
    headers = {
        "content-type": "application/json",
        "user-agent": "hookonce",
        **sign(event.raw, secret, datetime.now(UTC), event_id=event.event_id),
    }
    try:
        answer = requests.post(
            url, data=event.raw, headers=headers, timeout=TIMEOUT, allow_redirects=False, stream=True
        )
    except requests.RequestException as error:
        raise ConnectionError(f"{host} did not answer: {type(error).__name__}") from None
    answer.close()
    if answer.status_code == HTTPStatus.GONE:
        raise GiveUp(f"{host} answered 410: it wants no more alerts; take it out of [alerts] urls")
    if not 200 <= answer.status_code < 300:  # noqa: PLR2004  what success is
        raise ConnectionError(f"{host} answered {answer.status_code}; expected 2xx")
    return {"status": answer.status_code}
