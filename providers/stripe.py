"""Stripe signs `<t>.<body>` with HMAC-SHA256 and puts the time and every signature into one header.

While a secret is rolled there are several `v1=`, one per secret; `v0=` is a test scheme and means nothing.
The whole secret is the key, `whsec_` included, unlike in Standard Webhooks where the prefix comes off. Each
endpoint and the CLI have secrets of their own. The id is `$.id`, the same on every retry;
`$.pending_webhooks` is not. Retries go on for three days. Thin (v2) events have `$.context` where others have
`$.account`. Two events may tell of one change. Tests of old versions have one id, `evt_00000000000000`, whatever their
type, which is then a part of it.

The API lists for 30 days what was not delivered to each endpoint of the account; each entry is the whole event, in the
account's API version, which may be another than the endpoint's. Events of connected accounts are not in that list.

https://docs.stripe.com/webhooks/signature
https://docs.stripe.com/webhooks/process-undelivered-events
"""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from hookonce.providers import kit

scheme = kit.Hmac(
    header="stripe-signature", key="v1", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="t")
)
events = kit.one_event(
    id=replace(
        kit.first(kit.when_matches("$.id", "evt_0{14}", kit.join("$.id", "$.type")), "$.id"), where="$.id"
    ),
    type="$.type",
    account=kit.first("$.account", "$.context"),
    occurred_at="$.created",
)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what is certainly another thing: an API key, pasted by mistake."""
    scheme.check_secret(secret)
    if secret.startswith(("sk_", "pk_", "rk_")):
        msg = "the secret is an API key of Stripe's; expected the endpoint's signing secret, 'whsec_...'"
        raise ValueError(msg)


def _missed(account: kit.calls.Account, cursor: str, since: datetime) -> kit.calls.Request:
    asked = {
        "delivery_success": "false",
        "limit": str(kit.calls.MAX_PAGE),
        "created[gte]": str(int(since.timestamp())),
        **({"starting_after": cursor} if cursor else {}),
    }
    return kit.calls.Request(
        "GET", f"https://api.stripe.com/v1/events?{urlencode(asked)}", kit.calls.bearer(account.token)
    )


def _page(answer: kit.calls.Answer) -> kit.calls.Page:
    found = kit.calls.document(answer)
    listed = [_listed(each) for each in kit.calls.entries_of(found.get("data"))]
    return kit.calls.Page(listed, listed[-1].id if listed and found.get("has_more") is True else "")


def _listed(event: dict[str, Any]) -> kit.calls.Listed:
    known = kit.calls.text_at(event, "id", r"evt_\w{1,250}")
    if event.get("object") != "event":
        raise kit.calls.CallFailed("the list has what is no event")
    return kit.calls.Listed(
        known,
        kit.calls.text_at(event, "type", r"[\w.]{1,255}"),
        kit.calls.moment(event.get("created")),
        body=json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"),
    )


listing = kit.calls.Listing(
    missed=_missed,
    read=_page,
    hosts=("api.stripe.com",),
    keeps=kit.days(30),
    per_hour=25 * 3600,
    per_minute=25 * 60,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    retries_on=kit.UNSUCCESSFUL,
    disables_after="days of failures",
    identity=kit.told_apart_by(
        "$.id", new_on_retry=("signed time",), known_from="https://docs.stripe.com/webhooks/signature"
    ),
    volatile=("$.pending_webhooks",),
    mode=kit.mode("$.livemode", live=(True,)),
    subject=kit.about(entity=("$.data.object.object", "$.data.object.id"), version="$.created", unit="s"),
    listing=listing,
    setup_url="https://dashboard.stripe.com/webhooks",
)
