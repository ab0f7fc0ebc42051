"""Gitea, Forgejo and Gogs sign the JSON with HMAC-SHA256, in hex, in headers of each one's name.

`X-Hub-Signature-256` (behind `sha256=`) says the same; SHA-1 is never looked at. Hooks may be set to a form:
then what is signed is the JSON in its field `payload`, not the form (`services/webhook/deliver.go`). The id is
the delivery's UUID, in a header that is not signed; delivering again by hand may make a new one. They also send
GitHub's headers, so such a source must not be `github`. Hooks that are set to GET put the payload into the URL, which
is too short for most, and are not taken. There are no automatic retries.

https://docs.gitea.com/usage/webhooks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit


def _signed(delivery: Delivery, _time: bytes) -> bytes:
    if kit.is_form(delivery.headers) and delivery.body[:1] not in (b"{", b"["):
        return kit.form_body(delivery).get("payload", "").encode("utf-8", "surrogatepass")
    return delivery.body


scheme = kit.Hmac(header=("x-gitea-signature", "x-forgejo-signature", "x-gogs-signature"), signed=_signed)
_hub = kit.Hmac(header="x-hub-signature-256", prefix="sha256=", signed=_signed)
sign = kit.signer(scheme.sign, event_id="x-gitea-delivery", type="x-gitea-event", default_type="push")
_form = kit.json_in_form("payload")
events = kit.one_event(
    id=kit.header("x-gitea-delivery", "x-forgejo-delivery", "x-gogs-delivery", "x-github-delivery"),
    type=kit.header("x-gitea-event", "x-forgejo-event", "x-gogs-event", "x-github-event"),
    account=kit.first("$.repository.owner.id", "$.organization.id", "$.repository.id"),
    read=lambda delivery: (_form if delivery.body.startswith(b"payload=") else kit.json_body)(delivery),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the first of its signatures that is under a name we know. Raises: Rejected."""
    own = any(
        name in delivery.headers for name in ("x-gitea-signature", "x-forgejo-signature", "x-gogs-signature")
    )
    (_hub if not own and "x-hub-signature-256" in delivery.headers else scheme).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="a branch that is pushed forth and back, and a label that is set twice, bring one body",
    body_is_unsigned=False,
    signed_message=lambda delivery: _signed(delivery, b""),
    retry_horizon=kit.days(3),
    retries_on=(),
    identity=kit.told_apart_by(
        "header x-gitea-delivery",
        "header x-forgejo-delivery",
        "header x-gogs-delivery",
        "header x-github-delivery",
    ),
    max_body=5 << 20,  # it is parsed before it is known to be genuine
    subject=kit.about_each(
        {
            "issue_comment": "$.comment",
            "pull_request_comment": "$.comment",
            "issue*": "$.issue",
            "pull_request*": "$.pull_request",
        }
    ),
    setup_url="https://docs.gitea.com/usage/webhooks",
)
