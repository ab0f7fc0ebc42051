"""Google Pub/Sub sends a token (OIDC, RS256) in `Authorization`, which says who sends, and nothing about the body.

The secret is the e-mail address of the service account that the push subscription acts for; the keys are
Google's, and fetched. The audience is this source's URL, or the option `audience`. A subscription without
authentication sends no token and is refused. Tokens live for an hour. The id is `$.message.messageId`, the
type an attribute `eventType` if there is one; the content is base64 in `$.message.data`, which may be absent. Google
promises ids that are unique within a topic: where subscriptions of several topics push to one source, set its
`scope_ids_by_account = true`, and an id counts within its subscription.
Unwrapped messages have the id in a header. Gmail, Google Play and Workspace send this way. Retries go on for
a week.

https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions
"""

from typing import Final

from hookonce.providers import kit

_FETCHES: Final = (r"https://www\.googleapis\.com/oauth2/v3/certs",)
events = kit.one_event(
    id=kit.first("$.message.messageId", "$.message.message_id", "header x-goog-pubsub-message-id"),
    type=kit.first("$.message.attributes.eventType", kit.fixed("message")),
    account=kit.first("$.subscription", "header x-goog-pubsub-subscription-name"),
    occurred_at=kit.first("$.message.publishTime", "header x-goog-pubsub-publish-time"),
    read=kit.any_body_or_none,
)


@kit.with_options("google_pubsub")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    audience = given.text("audience", "")
    scheme = kit.Oidc(
        url="https://www.googleapis.com/oauth2/v3/certs",
        patterns=_FETCHES,
        issuers=("https://accounts.google.com", "accounts.google.com"),
        audience=audience,
    )
    return kit.Configured(
        sign=scheme.sign,
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=False,
            body_is_unsigned=True,
            signs_url=not audience,
            retry_horizon=kit.days(7),
            retries_on=kit.UNSUCCESSFUL,
            disables_after=kit.NEVER,
            identity=kit.told_apart_by(
                "$.message.messageId", "$.message.message_id", "header x-goog-pubsub-message-id"
            ),
            fetches=_FETCHES,
            setup_url="https://console.cloud.google.com/cloudpubsub/subscription/list",
        ),
    )
