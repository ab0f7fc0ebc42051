"""GitHub signs the body with HMAC-SHA256, in hex behind `sha256=`.

The id is `X-GitHub-Delivery`, the type `X-GitHub-Event`, and neither is covered by the signature: a captured
body can come again under a new id. Redelivery (by hand or by API, for three days) keeps the id; there are no
automatic retries. A hook set up without a secret sends no signature. The older `X-Hub-Signature` (SHA-1) is
sent beside it and never looked at. Hooks may be set to a form, with the JSON in `payload`. The type is the
header's word alone (`issues`); what was done is `data["action"]`. `ping` is an event too.

https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

from datetime import datetime
from typing import Any, Unpack

from hookonce.providers import Delivery, kit

scheme = kit.Hmac(header="x-hub-signature-256", prefix="sha256=")
_sign = kit.signer(scheme.sign, event_id="x-github-delivery", type="x-github-event", default_type="ping")

_form = kit.json_in_form("payload")


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    """Return the delivery that GitHub would send; of a type like `issues.opened` the header has the first word."""
    return _sign(body, secret, now, **(options | {"type": (options.get("type") or "ping").partition(".")[0]}))


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever GitHub sent
    """JSON, or JSON in a form; a body of no declared kind (GitHub's own example: `Hello, World!`) as text."""
    if kit.is_form(delivery.headers):
        return _form(delivery)
    if "content-type" in delivery.headers or delivery.body[:1] in (b"{", b"["):
        return kit.json_body(delivery)
    return kit.text_of(delivery.body)


events = kit.one_event(
    id="header x-github-delivery",
    type="header x-github-event",
    account=kit.first("$.installation.id", "$.organization.id", "$.repository.id"),
    read=_read,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats=(
        "it sends one body to the hooks of a repository and of its organization, and a member added twice is one "
        "body"
    ),
    retry_horizon=kit.days(3),
    retries_on=(),
    identity=kit.told_apart_by("header x-github-delivery"),
    max_body=25 << 20,
    subject=kit.about_each(
        {
            "check_suite": "$.check_suite",
            "deployment": "$.deployment",
            "deployment_status": "$.deployment_status",
            "discussion": "$.discussion",
            "discussion_comment": "$.comment",
            "issue_comment": "$.comment",
            "issues": "$.issue",
            "milestone": "$.milestone",
            "project": "$.project",
            "project_card": "$.project_card",
            "project_column": "$.project_column",
            "pull_request": "$.pull_request",
            "pull_request_review_comment": "$.comment",
            "repository": "$.repository",
            "workflow_run": "$.workflow_run",
        }
    ),
    setup_url="https://docs.github.com/en/webhooks/using-webhooks/creating-webhooks",
)
