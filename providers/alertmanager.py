"""Prometheus Alertmanager signs nothing; it brings a bearer token, or user name and password, as configured.

The secret is the bearer token (`http_config.authorization.credentials`); option `in` takes "basic" or another header.
A notification is a group of alerts and has no id: it is known by its group, its status and its alerts' fingerprints
and times. One that is repeated unchanged, after `repeat_interval`, is the same event; with the option
`reminders = true` each is one of its own, by the minute of receipt. The type is the status.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hookonce.providers.kit import (
    Configured,
    EventView,
    Extractor,
    Sender,
    body_digest,
    digest,
    field,
    first,
    fixed,
    one_event,
    told_apart_by,
)
from hookonce.providers.kit.registry.declared_options import token_scheme
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.registry.token_sender import by_token

_TELLING = ("fingerprint", "status", "startsAt", "endsAt")


def _alerts(view: EventView) -> object:
    alerts = field("$.alerts").get(view)
    if not isinstance(alerts, list) or not alerts:
        return None
    known = [[alert.get(name) for name in _TELLING] for alert in alerts if isinstance(alert, dict)]
    return known if all(each[0] for each in known) else None


def _notification(view: EventView) -> object:
    alerts = _alerts(view)
    return [field(path).get(view) for path in ("$.groupKey", "$.status", "$.receiver")] if alerts else None


_group = Extractor(_notification, "the group and its status")
events = one_event(
    id=first(digest(_group, Extractor(_alerts, "its alerts")), body_digest()),
    type=first(field("$.status"), fixed("unknown")),
    account=field("$.externalURL"),
    occurred_at=field("$.alerts[0].startsAt"),
)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "alertmanager")
    scheme = token_scheme(given, "bearer")
    reminders = given.flag("reminders")
    given.done()
    once = told_apart_by(
        "$.groupKey + $.alerts[*].fingerprint + $.alerts[*].startsAt",
        "body",
        because="an unchanged alert is the same event, unless the option reminders says otherwise",
    )
    return by_token(
        scheme,
        events=events,
        sender=Sender(
            id_is_signed=False,
            body_is_unsigned=True,
            retry_horizon=timedelta(hours=1),
            identity=told_apart_by("receipt") if reminders else once,
            id_period=timedelta(minutes=1) if reminders else None,
            setup_url="https://prometheus.io/docs/alerting/latest/configuration/#webhook_config",
        ),
    )
