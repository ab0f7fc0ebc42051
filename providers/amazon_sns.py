"""Amazon SNS signs values of the JSON body (RSA, SHA-1 or SHA-256) with a key whose certificate it links to.

The certificate is fetched, from SNS itself only. Anybody's topic is signed with the same key, so the option `topics`
(or a secret) lists the TopicArns that are ours; a delivery of another is refused. A SubscriptionConfirmation of such
a topic is confirmed by fetching its `SubscribeURL`. A secret `arn:PEM`, or a PEM alone, is used instead of what would
be fetched; without an ARN it takes any topic, so let it be the key of a server of your own. The id is `$.MessageId`,
the type what a message of Amazon's services says that it is (`Bounce` of SES, `ObjectCreated:Put` of S3, an alarm's
state), else `$.Type`; only signed values are in the event's data. Raw message delivery has no signature. The time is
that of publishing, and SNS tries for an hour at most.

https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
"""

from typing import Final

from hookonce.providers import Rejected, kit

_HOST: Final = r"https://sns\.[a-z]{2}(?:-[a-z]{2,12}){1,3}-[0-9]{1,2}\.amazonaws\.com(?:\.cn)?"
_CERTIFICATES: Final = rf"{_HOST}/SimpleNotificationService-[A-Za-z0-9]{{1,64}}\.pem"
_CONFIRMATIONS: Final = rf"{_HOST}/\?Action=ConfirmSubscription&[A-Za-z0-9&=:%._-]+"
_TEST: Final = "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-test.pem"

_KINDS: Final = ("notificationType", "eventType", "detail-type", "Event", "NewStateValue")


def _kind(view: kit.EventView) -> object:
    """Return the kind that the message names, if it is one of Amazon's own services': the text is signed."""
    try:
        said = kit.parse_json(str(kit.field("$.Message").get(view)))
    except Rejected:
        return None
    places = (*(kit.field(f"$['{name}']") for name in _KINDS), kit.field("$.Records[0].eventName"))
    return kit.first(*places).get(view._replace(data=said))


events = kit.one_event(
    id="$.MessageId",
    type=kit.first(kit.Extractor(_kind, "the message's kind"), "$.Type"),
    account="$.TopicArn",
    occurred_at="$.Timestamp",
    read=kit.sns.envelope,
)


@kit.with_options("amazon_sns")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider for a source's `topics`."""
    topics = given.take("topics", [])
    if not isinstance(topics, list) or not all(isinstance(arn, str) and ":sns:" in arn for arn in topics):
        given.mistakes.append(
            f"topics is {topics!r}, expected a list such as ['arn:aws:sns:eu-west-1:1:name']"
        )
    scheme = kit.sns.Sns(tuple(topics), _CERTIFICATES, _CONFIRMATIONS, _TEST)
    return kit.Configured(
        verify=scheme.verify,
        sign=lambda *_, **__: {},
        events=events,
        sender=kit.Sender(
            id_is_signed=True,
            signed_in_parts=True,
            retry_horizon=kit.hours(2),
            retries_on=kit.FAILURES,
            identity=kit.told_apart_by("$.MessageId"),
            max_body=1 << 20,  # it is parsed before it is known to be genuine
            fetches=(_CERTIFICATES, _CONFIRMATIONS),
            needs_secret=not topics,
            check_secret=check,
            handshake=scheme.handshake,
            deliver=scheme.deliver,
            setup_url="https://console.aws.amazon.com/sns/v3/home#/subscriptions",
        ),
    )


def check(secret: str) -> None:
    """Raises: ValueError unless it is a TopicArn, a key, or both."""
    owner = kit.owner_of(secret, "topic")
    if ":sns:" not in owner.name and not (owner.key and not owner.name):
        msg = "the secret is not usable; expected a TopicArn ('arn:aws:sns:...'), a PEM key, or 'arn:PEM'"
        raise ValueError(msg)
