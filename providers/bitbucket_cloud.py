"""Bitbucket signs the body with HMAC-SHA256, in hex behind `sha256=`, in `X-Hub-Signature`.

There is no `-256` in the header's name, though GitHub's SHA-1 header is called alike. The id is
`X-Request-UUID` (Data Center: `X-Request-Id`), the type `X-Event-Key`; neither is signed. Two more attempts
follow a failure and keep the id; `X-Attempt-Number` counts them. A hook without a secret sends no signature, nor
does "test connection" of Data Center (`diagnostics:ping`), which is answered and not stored.

https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Hmac(header="x-hub-signature", prefix="sha256=")
sign = kit.signer(scheme.sign, event_id="x-request-uuid", type="x-event-key", default_type="repo:push")
events = kit.one_event(
    id=kit.header("x-request-uuid", "x-request-id"),
    type="header x-event-key",
    account=kit.first("$.repository.uuid", "$.repository.workspace.uuid", "$.repository.id"),
    occurred_at="$.date",
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Answer a test of the connection, which is not signed and tells nothing; None for anything else."""
    unsigned = "x-hub-signature" not in delivery.headers
    return Reply() if unsigned and delivery.headers.get("x-event-key") == "diagnostics:ping" else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="a branch that is pushed forth and back brings one body twice",
    retry_horizon=kit.days(1),
    retries_on=kit.SERVER_ERRORS,
    identity=kit.told_apart_by("header x-request-uuid", "header x-request-id"),
    subject=kit.about_each(
        {
            "issue:comment_*": "$.comment",
            "issue:*": "$.issue",
            "pullrequest:comment_*": "$.comment",
            "pullrequest:*": "$.pullrequest",
        },
        within=("$.repository.uuid",),
        version="$.updated_on",
    ),
    setup_url="https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
)
