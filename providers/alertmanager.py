"""Prometheus Alertmanager signs nothing; it brings a bearer token, or user name and password, as configured.

The secret is the bearer token (`http_config.authorization.credentials`); option `in` takes "basic" or another header.
A notification is a group of alerts and has no id: it is known by its group, its status and its alerts' fingerprints
and times. One that is repeated unchanged, after `repeat_interval`, is the same event; with the option
`reminders = true` each is one of its own, by the minute of receipt. The type is the status.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from hookonce.providers import kit

_TELLING = ("fingerprint", "status", "startsAt", "endsAt")


def _alerts(view: kit.EventView) -> object:
    alerts = kit.field("$.alerts").get(view)
    if not isinstance(alerts, list) or not alerts:
        return None
    known = [[alert.get(name) for name in _TELLING] for alert in alerts if isinstance(alert, dict)]
    return known if all(each[0] for each in known) else None


def _notification(view: kit.EventView) -> object:
    alerts = _alerts(view)
    return (
        [kit.field(path).get(view) for path in ("$.groupKey", "$.status", "$.receiver")] if alerts else None
    )


_group = kit.Extractor(_notification, "the group and its status")
events = kit.one_event(
    id=kit.or_body(kit.digest(_group, kit.Extractor(_alerts, "its alerts"))),
    type=kit.or_unknown("$.status"),
    account="$.externalURL",
    occurred_at="$.alerts[0].startsAt",
)


@kit.with_options("alertmanager")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    scheme = kit.declared_options.token_scheme(given, "bearer")
    reminders = given.flag("reminders")
    once = kit.told_apart_by(
        "$.groupKey + $.alerts[*].fingerprint + $.alerts[*].startsAt",
        "body",
        because="an unchanged alert is the same event, unless the option reminders says otherwise",
    )
    return kit.by_token(
        scheme,
        events=events,
        sender=kit.Sender(
            id_is_signed=False,
            retry_horizon=kit.hours(1),
            identity=kit.told_apart_by("receipt") if reminders else once,
            id_period=kit.minutes(1) if reminders else None,
            setup_url="https://prometheus.io/docs/alerting/latest/configuration/#webhook_config",
        ),
    )
