"""Twitch signs `<id><time><body>` with HMAC-SHA256, hex behind `sha256=`, without anything in between.

The id is `Twitch-Eventsub-Message-Id`, signed and the same on every retry; the type is the subscription's, or the
message's own if it is no notification (`revocation`). Only `drop.entitlement.grant` comes in batches, with an id for
each. A new subscription is probed with a signed challenge, which goes back as it came. The time may be ten minutes
off. A subscription that fails too often is revoked.

https://dev.twitch.tv/docs/eventsub/handling-webhook-events/
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

_KIND = "twitch-eventsub-message-type"
_TYPE = "twitch-eventsub-subscription-type"
scheme = kit.Hmac(
    header="twitch-eventsub-message-signature",
    prefix="sha256=",
    signed="{header:twitch-eventsub-message-id}{timestamp}{body}",
    timestamp=kit.Timestamp(
        header="twitch-eventsub-message-timestamp", unit="iso", tolerance=kit.minutes(10)
    ),
)
sign = kit.signer(
    scheme.sign, event_id="twitch-eventsub-message-id", type=_TYPE, default_type="channel.follow"
)


def _other(view: kit.EventView) -> object:
    said = view.whole if isinstance(view.whole, dict) else {}
    kind = view.delivery.headers.get(_KIND, "revocation")
    return None if "event" in said or "events" in said or kind == "notification" else kind


def _is_batch(delivery: Delivery) -> bool:
    """By the body alone, since the header of the type is not signed."""
    if b"drop.entitlement.grant" not in delivery.body or b'"events"' not in delivery.body:
        return False
    data = kit.json_body(delivery)
    return (
        kit.json_paths.find(data, ("subscription", "type")) == "drop.entitlement.grant" and "events" in data
    )


_message = kit.Extractor(_other, "the message's type")
_time = kit.header("twitch-eventsub-message-timestamp")
_one = kit.one_event(
    id="header twitch-eventsub-message-id",
    type=kit.first(_message, "$.subscription.type", kit.header(_TYPE)),
    account="$.subscription.condition.broadcaster_user_id",
    occurred_at=_time,
)
_many = kit.many_events(
    items="$.events",
    id="$.id",
    type=kit.first(_message, kit.whole("$.subscription.type")),
    account="$.data.organization_id",
    occurred_at=_time,
)
events = kit.one_of_two(_one, _many, when=_is_batch)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a challenge that Twitch signed; None for anything else."""
    if delivery.headers.get(_KIND) != "webhook_callback_verification":
        return None
    challenge = kit.json_paths.find(kit.authentic_body(scheme.authentic, delivery, secrets), ("challenge",))
    return kit.echo(challenge) if isinstance(challenge, str) else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.events[*].id", "header twitch-eventsub-message-id"),
    setup_url="https://dev.twitch.tv/console",
)
