"""Pipedrive signs nothing; it brings a user name and password (HTTP Basic), if its webhook has them.

The secret is `user:password`. Of version 2 the id is `$.meta.id`; of version 1 that is the object's, so what happened
to it and when (in µs) are the event. `attempt` (`retry` in version 1) counts. Pipedrive tries three more times, within
three minutes, and bans a URL that keeps failing.

https://pipedrive.readme.io/docs/guide-for-webhooks-v2
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    told_apart_by,
    when_matches,
)
from hookonce.providers.kit.registry.token_sender import token_sender

_COUNTED = ("$.meta.attempt", "$.retry")
_object = field("$.meta.id")
events = one_event(
    id=first(
        when_matches(field("$.meta.version"), r"2\..*", _object),
        join(field("$.event"), _object, field("$.meta.timestamp_micro")),
        body_digest(*_COUNTED),
    ),
    type=first(
        field("$.event"), join(field("$.meta.action"), field("$.meta.entity"), by="."), fixed("unknown")
    ),
    account=field("$.meta.company_id"),
    occurred_at=field("$.meta.timestamp"),
)
configure = token_sender(
    "pipedrive",
    "basic",
    events=events,
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=timedelta(hours=1),
        identity=told_apart_by(
            "$.event + $.meta.timestamp_micro", "$.meta.id", new_on_retry=("$.meta.attempt", "$.retry")
        ),
        volatile=_COUNTED,
        setup_url="https://app.pipedrive.com/settings/webhooks",
    ),
)
