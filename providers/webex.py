"""Webex signs the body with HMAC-SHA1, in hex.

`$.id` is that of the webhook, not of the event: the event's is made of the resource, what happened, and the
resource's id, with the time of the change if it tells one. What may happen to one thing more than once without (a
room that is changed, somebody who joins again, a meeting in a room of its own) is known by its fingerprint and the
minute of receipt. Webex does not try again, and switches a webhook off after 100 failures in five minutes.

https://developer.webex.com/docs/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(header="x-spark-signature", hash="sha1")
verify = scheme.verify
sign = signer(scheme.sign)
_resource = field("$.resource")
_event = field("$.event")
_key = (_resource, _event, field("$.data.id"))
events = one_event(
    id=first(
        join(*_key, field("$.data.updated")),
        when_matches(
            join(_resource, _event), "(?:messages|attachmentActions):(?:created|deleted)", join(*_key)
        ),
    ),
    undated=body_digest(),
    former=(join(*_key),),
    type=first(join(_resource, _event, by="."), _event, fixed("unknown")),
    account=field("$.orgId"),
    occurred_at=first(field("$.data.updated"), field("$.data.created")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    retries_on=(),
    disables_after="a hundred failures within five minutes",
    identity=told_apart_by("$.resource + $.event + $.data.id", "receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://developer.webex.com/docs/webhooks",
)
