"""Webex signs the body with HMAC-SHA1, in hex.

`$.id` is that of the webhook, not of the event: the event's is made of the resource, what happened, and the
resource's id, with the time of the change if it tells one. What tells no time and may happen to one thing more than
once (a room that is changed, somebody who joins again, a meeting in a room of its own) is known by its fingerprint
and the minute of receipt. Webex does not try again, and switches a webhook off after 100 failures in five minutes.

https://developer.webex.com/docs/webhooks
"""

from hookonce.providers import kit

_resource = kit.field("$.resource")
_event = kit.field("$.event")
_key = (_resource, _event, kit.field("$.data.id"))
events = kit.one_event(
    id=kit.first(
        kit.join(*_key, "$.data.updated"),
        kit.when_matches(
            kit.join(_resource, _event), "(?:messages|attachmentActions):(?:created|deleted)", kit.join(*_key)
        ),
    ),
    undated=kit.body_digest(),
    type=kit.or_unknown(kit.join(_resource, _event, by="."), _event),
    account="$.orgId",
    occurred_at=kit.first("$.data.updated", "$.data.created"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-spark-signature", hash="sha1"),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    retries_on=(),
    disables_after="a hundred failures within five minutes",
    identity=kit.told_apart_by("$.resource + $.event + $.data.id", "receipt"),
    id_period=kit.minutes(1),
    setup_url="https://developer.webex.com/docs/webhooks",
)
