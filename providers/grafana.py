"""Grafana Alerting signs the body, or `<time>:<body>`, with HMAC-SHA256, in hex; as the contact point is set up.

Option `timestamp` names the contact point's timestamp header: then the time is signed, and must be sent. Option
`header` is for a signature header of another name than Grafana's own. Both as in Grafana's source (alerting,
`http/hmac.go`). There is no id: a notification is known by its group, its status and its alerts' fingerprints
and times, so one that Grafana repeats unchanged is the same event. The type is the status, the account the
organisation.

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


def _alerts(view: View) -> object:
    alerts = field("$.alerts").get(view)
    if not isinstance(alerts, list):
        return None
    return [[alert.get(name) for name in _NAMES] for alert in alerts if isinstance(alert, dict)]


events = one_event(
    id=first(digest(field("$.groupKey"), field("$.status"), Pick(_alerts, "the alerts")), body_digest()),
    type=first(field("$.status"), fixed("unknown")),
    account=field("$.orgId"),
    occurred_at=field("$.alerts[0].startsAt"),
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
