"""Grafana Alerting signs the body, or `<time>:<body>`, with HMAC-SHA256, in hex; as the contact point is set up.

Option `timestamp` names the contact point's timestamp header: then the time is signed, and must be sent. Option
`header` is for a signature header of another name than Grafana's own. Both as in Grafana's source (alerting,
`http/hmac.go`). There is no id: a notification is known by its group, its status and its alerts' fingerprints and
times, so one that Grafana repeats unchanged is the same event; with the option `reminders = true` each is one of its
own, by the minute of receipt. What a custom payload made may be any text; without group and alerts it is known by its
fingerprint. The type is the status, the account the organisation.

https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hookonce.providers.kit import (
    Configured,
    EventView,
    Extractor,
    Hmac,
    Sender,
    Timestamp,
    any_body_or_none,
    body_digest,
    digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.registry.options import Options

_HEADERS = ("x-grafana-alerting-signature", "x-grafana-alert-signature")
_NAMES = ("fingerprint", "status", "startsAt", "endsAt")


def _group(view: EventView) -> object:
    group, status, alerts = (field(path).get(view) for path in ("$.groupKey", "$.status", "$.alerts"))
    if not group or not isinstance(alerts, list):
        return None
    known = [
        [alert.get(name) for name in _NAMES]
        for alert in alerts
        if isinstance(alert, dict) and alert.get("fingerprint") and alert.get("startsAt")
    ]
    return [group, status, known] if known and len(known) == len(alerts) else None


_known = digest(Extractor(_group, "the group, its status and its alerts"))


def _events(*, reminders: bool) -> one_event:
    return one_event(
        id=fixed("") if reminders else first(_known, body_digest()),
        undated=first(_known, body_digest()) if reminders else None,
        type=first(field("$.status"), fixed("unknown")),
        account=field("$.orgId"),
        occurred_at=field("$.alerts[0].startsAt"),
        former=(_known,) if reminders else (),
        read=any_body_or_none,
    )


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "grafana")
    header = given.text("header", "")
    timestamp = given.text("timestamp", "")
    reminders = given.flag("reminders")
    given.done()
    scheme = Hmac(
        header=header or _HEADERS,
        signed="{timestamp}:{body}" if timestamp else "{body}",
        timestamp=Timestamp(header=timestamp) if timestamp else None,
    )
    return Configured(
        verify=scheme.verify,
        sign=signer(scheme.sign),
        events=_events(reminders=reminders),
        sender=Sender(
            id_is_signed=True,
            retry_horizon=timedelta(hours=1),
            identity=told_apart_by("receipt")
            if reminders
            else told_apart_by(
                "$.alerts[*].fingerprint + $.alerts[*].startsAt + $.groupKey",
                "body",
                because="an unchanged alert is the same event, unless the option reminders says otherwise",
            ),
            id_period=timedelta(minutes=1) if reminders else None,
            tolerance=scheme.tolerance,
            methods=("POST", "PUT"),
            check_secret=scheme.check_secret,
            setup_url="https://grafana.com/docs/grafana/latest/alerting/",
        ),
    )
