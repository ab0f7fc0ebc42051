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

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from hookonce.providers.kit import (
    NEVER,
    UNSUCCESSFUL,
    Configured,
    Sender,
    any_body_or_none,
    field,
    first,
    fixed,
    header,
    one_event,
    told_apart_by,
)
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.schemes.google_oidc import Oidc

_FETCHES: Final = (r"https://www\.googleapis\.com/oauth2/v3/certs",)
events = one_event(
    id=first(field("$.message.messageId"), field("$.message.message_id"), header("x-goog-pubsub-message-id")),
    type=first(field("$.message.attributes.eventType"), fixed("message")),
    account=first(field("$.subscription"), header("x-goog-pubsub-subscription-name")),
    occurred_at=first(field("$.message.publishTime"), header("x-goog-pubsub-publish-time")),
    read=any_body_or_none,
)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "google_pubsub")
    audience = given.text("audience", "")
    given.done()
    scheme = Oidc(
        url="https://www.googleapis.com/oauth2/v3/certs",
        patterns=_FETCHES,
        issuers=("https://accounts.google.com", "accounts.google.com"),
        audience=audience,
    )
    return Configured(
        verify=scheme.verify,
        sign=scheme.sign,
        events=events,
        sender=Sender(
            id_is_signed=False,
            body_is_unsigned=True,
            signs_url=not audience,
            retry_horizon=timedelta(days=7),
            retries_on=UNSUCCESSFUL,
            disables_after=NEVER,
            identity=told_apart_by(
                "$.message.messageId", "$.message.message_id", "header x-goog-pubsub-message-id"
            ),
            tolerance=scheme.tolerance,
            fetches=_FETCHES,
            check_secret=scheme.check_secret,
            setup_url="https://console.cloud.google.com/cloudpubsub/subscription/list",
        ),
    )
