"""Pipedrive signs nothing; it brings a user name and password (HTTP Basic), if its webhook has them.

The secret is `user:password`. In version 2 the id is `$.meta.id`; in version 1 that is the object's id, so the
event's is made of what happened, the object and the time (in µs). `attempt` (`retry` in version 1) counts the
attempts. Pipedrive tries three more times, within three minutes, and bans a URL that keeps failing.

https://pipedrive.readme.io/docs/guide-for-webhooks-v2
"""

from hookonce.providers import kit

_COUNTED = ("$.meta.attempt", "$.retry")
_object = kit.field("$.meta.id")
events = kit.one_event(
    id=kit.or_body(
        kit.when_matches("$.meta.version", r"2\..*", _object),
        kit.join("$.event", _object, "$.meta.timestamp_micro"),
        without=_COUNTED,
    ),
    type=kit.or_unknown("$.event", kit.join("$.meta.action", "$.meta.entity", by=".")),
    account="$.meta.company_id",
    occurred_at="$.meta.timestamp",
)
configure = kit.token_sender(
    "pipedrive",
    "basic",
    events=events,
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon=kit.hours(1),
        identity=kit.told_apart_by(
            "$.event + $.meta.timestamp_micro", "$.meta.id", new_on_retry=("$.meta.attempt", "$.retry")
        ),
        volatile=_COUNTED,
        setup_url="https://app.pipedrive.com/settings/webhooks",
    ),
)
