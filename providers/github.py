"""GitHub signs the body with HMAC-SHA256, in hex behind `sha256=`.

The id is `X-GitHub-Delivery`, the type `X-GitHub-Event`, and neither is covered by the signature: a captured
body can come again under a new id. Redelivery (by hand or by API, for three days) keeps the id; there are no
automatic retries. A hook set up without a secret sends no signature. The older `X-Hub-Signature` (SHA-1) is
sent beside it and never looked at. Hooks may be set to a form, with the JSON in `payload`. The type is the
header's word alone (`issues`); what was done is `data["action"]`. `ping` is an event too.

The API lists the deliveries of a hook for three days, by cursor, and delivers one again; an App proves itself with a
token that its private key signs.

https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
https://docs.github.com/en/rest/repos/webhooks#list-deliveries-for-a-repository-webhook
"""

import re
from datetime import datetime
from typing import Any, Final, Unpack
from urllib.parse import urlencode

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
_API: Final = r"https://api\.github\.com/(repos/[\w.-]+/[\w.-]+/hooks/\d+|orgs/[\w.-]+/hooks/\d+|app/hook)"
_NEXT: Final = re.compile(r'<[^>]*[?&]cursor=([\w.:-]{1,200})[^>]*>; *rel="next"', re.ASCII)


def _asked(method: str, account: kit.calls.Account, path: str) -> kit.calls.Request:
    headers = kit.calls.bearer(account.token, accept="application/vnd.github+json")
    return kit.calls.Request(method, account.api + path, {**headers, "x-github-api-version": "2022-11-28"})


def _missed(account: kit.calls.Account, cursor: str, since: datetime) -> kit.calls.Request:  # noqa: ARG001
    """The deliveries of a hook, newest first: its list can't be asked back to a time."""
    asked = {"per_page": str(kit.calls.MAX_PAGE), **({"cursor": cursor} if cursor else {})}
    return _asked("GET", account, f"/deliveries?{urlencode(asked)}")


def _redeliver(account: kit.calls.Account, reference: str) -> kit.calls.Request:
    return _asked("POST", account, f"/deliveries/{int(reference)}/attempts")


def _page(answer: kit.calls.Answer) -> kit.calls.Page:
    entries = kit.calls.entries_of(kit.calls.document(answer, list))
    found = _NEXT.search(answer.headers.get("link", ""))
    return kit.calls.Page([_listed(each) for each in entries], found[1] if found else "")


def _listed(entry: dict[str, Any]) -> kit.calls.Listed:
    return kit.calls.Listed(
        kit.calls.text_at(entry, "guid", r"[0-9a-fA-F-]{1,64}"),
        kit.calls.text_at(entry, "event", r"\w{1,100}"),
        kit.calls.moment(entry.get("delivered_at")),
        kit.calls.text_at(entry, "id", r"\d{1,20}"),
        is_delivered=str(entry.get("status_code")).startswith("2"),
        is_first=entry.get("redelivery") is not True,
    )


def _token(key: str, now: datetime) -> str:
    """A token as it is, or of an App's `client_id` and `pem` (as GitHub hands them out) one for ten minutes."""
    if not key.startswith("{"):
        return key
    app = kit.calls.key_document(key, "client_id", "pem")
    issued = int(now.timestamp()) - 60
    return kit.calls.signed(
        kit.jws.make, {"iat": issued, "exp": issued + 600, "iss": app["client_id"]}, app["pem"]
    )


listing = kit.calls.Listing(
    missed=_missed,
    read=_page,
    redeliver=_redeliver,
    token=_token,
    api=_API,
    hosts=("api.github.com",),
    keeps=kit.days(3),
    per_hour=5000,
    per_minute=900,
    write_cost=5,
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
    listing=listing,
    setup_url="https://docs.github.com/en/webhooks/using-webhooks/creating-webhooks",
)
