"""Grafana Alerting signs the body, or `<time>:<body>`, with HMAC-SHA256, in hex; as the contact point is set up.

Option `timestamp` names the contact point's timestamp header: then the time is signed, and must be sent. Option
`header` is for a signature header of another name than Grafana's own. Both as in Grafana's source (alerting,
`http/hmac.go`). There is no id: a notification is known by its group, its status and its alerts' fingerprints and
times, so one that Grafana repeats unchanged is the same event. What a custom payload made may be any text; without
group and alerts it is known by its fingerprint. The type is the status, the account the organisation.

https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/
"""

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from providers.kit import (
    Hmac,
    Pick,
    Timestamp,
    View,
    any_body_or_none,
    body_digest,
    digest,
    field,
    first,
    fixed,
    one_event,
    signer,
)
from providers.kit.options import Options

_HEADERS = ("x-grafana-alerting-signature", "x-grafana-alert-signature")
_NAMES = ("fingerprint", "status", "startsAt", "endsAt")


def _group(view: View) -> object:
    group, status, alerts = (field(path).get(view) for path in ("$.groupKey", "$.status", "$.alerts"))
    if not group or not isinstance(alerts, list):
        return None
    known = [
        [alert.get(name) for name in _NAMES]
        for alert in alerts
        if isinstance(alert, dict) and alert.get("fingerprint") and alert.get("startsAt")
    ]
    return [group, status, known] if known and len(known) == len(alerts) else None


events = one_event(
    id=first(digest(Pick(_group, "the group, its status and its alerts")), body_digest()),
    type=first(field("$.status"), fixed("unknown")),
    account=field("$.orgId"),
    occurred_at=field("$.alerts[0].startsAt"),
    read=any_body_or_none,
)


def configure(options: Mapping[str, Any]) -> object:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "grafana")
    header, timestamp = given.text("header", ""), given.text("timestamp", "")
    given.done()
    scheme = Hmac(
        header=header or _HEADERS,
        signed="{timestamp}:{body}" if timestamp else "{body}",
        timestamp=Timestamp(header=timestamp) if timestamp else None,
    )
    return SimpleNamespace(
        verify=scheme.verify,
        sign=signer(scheme.sign),
        events=events,
        CHECK=scheme.check_secret,
        TOLERANCE=scheme.tolerance,
        METHODS=("POST", "PUT"),
        RETRY_HORIZON=timedelta(hours=1),
        SETUP="https://grafana.com/docs/grafana/latest/alerting/",
    )
