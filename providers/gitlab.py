"""GitLab sends a shared token, or, with a signing token (GitLab 19), signs as Standard Webhooks does.

Secrets that start with `whsec_` are signing tokens, all others are compared with `X-Gitlab-Token`. If a source has
signing tokens, a signed delivery stands or falls by its signature. A token says nothing about the body, so this
module counts as unsigned as a whole. The id is `webhook-id` (signed) or `Idempotency-Key`, which are equal and the
same on resends. Older versions have neither, then it is `X-Gitlab-Webhook-UUID`, then `X-Gitlab-Event-UUID`, which
hooks that fire each other share; what has none is known by its fingerprint. The type is the header's text, `Push
Hook`.

https://docs.gitlab.com/user/project/integrations/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, kit

_signed = kit.StandardWebhooks(vendors=("webhook",))
_token = kit.Token(header="x-gitlab-token")
_SIGNING = "whsec_"

events = kit.one_event(
    id=kit.or_body(
        kit.header("webhook-id", "idempotency-key", "x-gitlab-webhook-uuid", "x-gitlab-event-uuid")
    ),
    type="header x-gitlab-event",
    account=kit.first("$.project.id", "$.project_id", "$.group_id", "header x-gitlab-instance"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature if it can be checked, by its token otherwise. Raises: Rejected."""
    signing = [secret for secret in secrets if secret.startswith(_SIGNING)]
    tokens = [secret for secret in secrets if not secret.startswith(_SIGNING)]
    if signing and ("webhook-signature" in delivery.headers or not tokens):
        _signed.verify(delivery, signing, now)
    else:
        _token.verify(delivery, tokens, now)


def check_secret(secret: str) -> None:
    """Raises: ValueError for a blank token, or a signing token that is not base64."""
    (_signed if secret.startswith(_SIGNING) else _token).check_secret(secret)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    return (_signed if secret.startswith(_SIGNING) else _token).sign(body, secret, now, **options)


sign = kit.signer(_sign, event_id="idempotency-key", type="x-gitlab-event", default_type="Push Hook")
sender = kit.Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.days(3),
    disables_after="four failures in a row: a pause, and for good after forty",
    identity=kit.told_apart_by(
        "header webhook-id",
        "header idempotency-key",
        "header x-gitlab-webhook-uuid",
        "header x-gitlab-event-uuid",
    ),
    subject=kit.about(
        entity=("$.object_kind", "$.object_attributes.id"), version="$.object_attributes.updated_at"
    ),
    setup_url="https://docs.gitlab.com/user/project/integrations/webhooks/",
)
