"""Grafana Alerting signs the body, or `<time>:<body>`, with HMAC-SHA256, in hex; as the contact point is set up.

Option `timestamp` names the contact point's timestamp header: then the time is signed, and must be sent. Option
`header` is for a signature header of another name than Grafana's own. Both as in Grafana's source (alerting,
`http/hmac.go`). There is no id: a notification is known by its group, its status and its alerts' fingerprints and
times, so one that Grafana repeats unchanged is the same event; with the option `reminders = true` each is one of its
own, by the minute of receipt. What a custom payload made may be any text; without group and alerts it is known by its
fingerprint. The type is the status, the account the organisation.

https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/
"""

from hookonce.providers import kit

_HEADERS = ("x-grafana-alerting-signature", "x-grafana-alert-signature")
_NAMES = ("fingerprint", "status", "startsAt", "endsAt")


def _group(view: kit.EventView) -> object:
    group, status, alerts = (kit.field(path).get(view) for path in ("$.groupKey", "$.status", "$.alerts"))
    if not group or not isinstance(alerts, list):
        return None
    known = [
        [alert.get(name) for name in _NAMES]
        for alert in alerts
        if isinstance(alert, dict) and alert.get("fingerprint") and alert.get("startsAt")
    ]
    return [group, status, known] if known and len(known) == len(alerts) else None


_known = kit.digest(kit.Extractor(_group, "the group, its status and its alerts"))


def _events(*, reminders: bool) -> kit.one_event:
    return kit.one_event(
        id=kit.fixed("") if reminders else kit.or_body(_known),
        undated=kit.or_body(_known) if reminders else None,
        type=kit.or_unknown("$.status"),
        account="$.orgId",
        occurred_at="$.alerts[0].startsAt",
        read=kit.any_body_or_none,
    )


@kit.with_options("grafana")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    header = given.text("header", "")
    timestamp = given.text("timestamp", "")
    reminders = given.flag("reminders")
    scheme = kit.Hmac(
        header=header or _HEADERS,
        signed="{timestamp}:{body}" if timestamp else "{body}",
        timestamp=kit.Timestamp(header=timestamp) if timestamp else None,
    )
    return kit.Configured(
        events=_events(reminders=reminders),
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon=kit.hours(1),
            identity=kit.told_apart_by("receipt")
            if reminders
            else kit.told_apart_by(
                "$.alerts[*].fingerprint + $.alerts[*].startsAt + $.groupKey",
                "body",
                because="an unchanged alert is the same event, unless the option reminders says otherwise",
            ),
            id_period=kit.minutes(1) if reminders else None,
            methods=("POST", "PUT"),
            setup_url="https://grafana.com/docs/grafana/latest/alerting/",
        ),
    )
