"""Twitch signs `<id><time><body>` with HMAC-SHA256, hex behind `sha256=`, without anything in between.

The id is `Twitch-Eventsub-Message-Id`, signed and the same on every retry; the type is the subscription's, of
messages that are no notification their own (`revocation`). Only `drop.entitlement.grant` comes in batches, with
an id for each. A new subscription is probed with a signed challenge, which goes back as it came. The time may
be ten minutes off. A subscription that fails too often is revoked.

https://dev.twitch.tv/docs/eventsub/handling-webhook-events/
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Reply
from providers.kit import Hmac, Pick, Timestamp, View, field, first, header, paths, signer
from providers.kit.events import either, many_events, one_event
from providers.kit.probing import echo, said_by_sender

_KIND = "twitch-eventsub-message-type"
_TYPE = "twitch-eventsub-subscription-type"
scheme = Hmac(
    header="twitch-eventsub-message-signature",
    prefix="sha256=",
    signed="{header:twitch-eventsub-message-id}{timestamp}{body}",
    timestamp=Timestamp(
        header="twitch-eventsub-message-timestamp", unit="iso", tolerance=timedelta(minutes=10)
    ),
)
verify, CHECK, TOLERANCE = scheme.verify, scheme.check_secret, scheme.tolerance
sign = signer(scheme.sign, event_id="twitch-eventsub-message-id", type=_TYPE, default_type="channel.follow")


def _other(view: View) -> object:
    kind = view.delivery.headers.get(_KIND, "notification")
    return None if kind == "notification" else kind


def _is_batch(delivery: Delivery) -> bool:
    return delivery.headers.get(_TYPE) == "drop.entitlement.grant" and b'"events"' in delivery.body


_type = first(Pick(_other, "the message's type"), header(_TYPE), field("$.subscription.type"))
_time = header("twitch-eventsub-message-timestamp")
_one = one_event(
    id=header("twitch-eventsub-message-id"),
    type=_type,
    account=field("$.subscription.condition.broadcaster_user_id"),
    occurred_at=_time,
)
_many = many_events(
    items="$.events", id=field("$.id"), type=_type, account=field("$.data.organization_id"), occurred_at=_time
)
events = either(_one, _many, when=_is_batch)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://dev.twitch.tv/console"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a challenge that Twitch signed; None for anything else."""
    if delivery.headers.get(_KIND) != "webhook_callback_verification":
        return None
    challenge = paths.find(said_by_sender(scheme.authentic, delivery, secrets), ("challenge",))
    return echo(challenge) if isinstance(challenge, str) else None
