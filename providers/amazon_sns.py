"""Amazon SNS signs values of the JSON body (RSA, SHA-1 or SHA-256) with a key whose certificate it links to.

The certificate is fetched, from SNS itself only. Anybody's topic is signed with the same key, so the option
`topics` (or a secret) lists the TopicArns that are ours; a delivery of another is refused. A
SubscriptionConfirmation of such a topic is confirmed by fetching its `SubscribeURL`. A secret `arn:PEM`, or a
PEM alone, is used instead of what would be fetched; without an ARN it takes any topic, so let it be the key
of a server of your own. The id is `$.MessageId`, the type `$.Type`; only signed values are in the event's
data. Raw message delivery has no signature. The time is that of publishing, and SNS tries for an hour at
most.

https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
"""

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final

from providers.kit import field, one_event
from providers.kit.fetched import owner_of
from providers.kit.options import Options
from providers.kit.sns import TOLERANCE, Sns, envelope

_HOST: Final = r"https://sns\.[a-z]{2}(?:-[a-z]{2,12}){1,3}-[0-9]{1,2}\.amazonaws\.com(?:\.cn)?"
_CERTIFICATES: Final = rf"{_HOST}/SimpleNotificationService-[A-Za-z0-9]{{1,64}}\.pem"
_CONFIRMATIONS: Final = rf"{_HOST}/\?Action=ConfirmSubscription&[A-Za-z0-9&=:%._-]+"
_TEST: Final = "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-test.pem"

events = one_event(
    id=field("$.MessageId"),
    type=field("$.Type"),
    account=field("$.TopicArn"),
    occurred_at=field("$.Timestamp"),
    read=envelope,
)


def configure(options: Mapping[str, Any]) -> object:
    """Make the provider for a source's `topics`. Raises: ValueError listing every mistake."""
    given = Options(options, "amazon_sns")
    topics = given.take("topics", [])
    if not isinstance(topics, list) or not all(isinstance(arn, str) and ":sns:" in arn for arn in topics):
        given.mistakes.append(
            f"topics is {topics!r}, expected a list such as ['arn:aws:sns:eu-west-1:1:name']"
        )
    given.done()
    scheme = Sns(tuple(topics), _CERTIFICATES, _CONFIRMATIONS, _TEST)
    return SimpleNamespace(
        verify=scheme.verify,
        handshake=scheme.handshake,
        deliver=scheme.deliver,
        sign=lambda *_, **__: {},
        events=events,
        CHECK=check,
        SIGNED_IN_PARTS=True,
        NEEDS_SECRET=not topics,
        TOLERANCE=TOLERANCE,
        RETRY_HORIZON=timedelta(hours=2),
        FETCHES=(_CERTIFICATES, _CONFIRMATIONS),
        SETUP="https://console.aws.amazon.com/sns/v3/home#/subscriptions",
        MAX_BODY=1 << 20,  # it is parsed before it is known to be genuine
    )


def check(secret: str) -> None:
    """Raises: ValueError unless it is a TopicArn, a key, or both."""
    owner = owner_of(secret, "topic")
    if ":sns:" not in owner.name and not (owner.key and not owner.name):
        msg = "the secret is not usable; expected a TopicArn ('arn:aws:sns:...'), a PEM key, or 'arn:PEM'"
        raise ValueError(msg)
