"""Bitbucket signs the body with HMAC-SHA256, in hex behind `sha256=`, in `X-Hub-Signature`.

There is no `-256` in the header's name, though GitHub's SHA-1 header is called alike. The id is
`X-Request-UUID` (Data Center: `X-Request-Id`), the type `X-Event-Key`; neither is signed. Two more attempts
follow a failure and keep the id; `X-Attempt-Number` counts them. A hook without a secret sends no signature, nor
does "test connection" of Data Center (`diagnostics:ping`), which is answered and not stored.

https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    SERVER_ERRORS,
    Hmac,
    Sender,
    field,
    first,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-hub-signature", prefix="sha256=")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-request-uuid", type="x-event-key", default_type="repo:push")
events = one_event(
    id=header("x-request-uuid", "x-request-id"),
    type=header("x-event-key"),
    account=first(field("$.repository.uuid"), field("$.repository.workspace.uuid"), field("$.repository.id")),
    occurred_at=field("$.date"),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Answer a test of the connection, which is not signed and tells nothing; None for anything else."""
    unsigned = "x-hub-signature" not in delivery.headers
    return Reply() if unsigned and delivery.headers.get("x-event-key") == "diagnostics:ping" else None


sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=1),
    retries_on=SERVER_ERRORS,
    identity=told_apart_by("header x-request-uuid", "header x-request-id"),
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
)
