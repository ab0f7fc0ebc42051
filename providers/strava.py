"""Strava proves nothing: a secret at the end of the URL tells its events from others.

Its probe of a new URL brings `hub.verify_token`, which must be the same secret, and wants `hub.challenge` back, in
JSON. There is no id: all that the body says is the event, whose time is in seconds. Strava waits 2 s, and tries
three times in all.

https://developers.strava.com/docs/webhooks/
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Token(path=True)
events = kit.one_event(
    id=kit.data_digest(),
    type=kit.or_unknown(kit.join("$.object_type", "$.aspect_type", by=".")),
    account="$.owner_id",
    occurred_at="$.event_time",
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Send a challenge back to who knows the secret; 403 to others, None for anything else."""
    reply = kit.subscribed(delivery, secrets)
    right = reply is not None and reply.body
    return (
        kit.json_reply({"hub.challenge": kit.query_parameter(delivery, "hub.challenge")}) if right else reply
    )


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.object_type + $.object_id + $.aspect_type + $.event_time + $.owner_id"),
    setup_url="https://www.strava.com/settings/api",
)
