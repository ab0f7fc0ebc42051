"""Ghost signs `<body><t>` with HMAC-SHA256, in hex: `X-Ghost-Signature: sha256=…, t=…`, the time in milliseconds.

So do all since version 5.87; those before sign the body alone and are refused. There is neither id nor type: the
body holds what was changed, `$.post.current` and `previous`, and the same change may be news for several webhooks
that end here. The signed time tells them apart: Ghost tries six times in a row, with the headers of the first
(`services/webhooks/webhook-trigger.js`). The type is the kind of object; a source for each event knows more.

https://docs.ghost.org/webhooks
"""

from datetime import timedelta
from typing import Any

from hookonce.providers.kit import (
    EventView,
    Extractor,
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-ghost-signature",
    key="sha256",
    signed="{body}{timestamp}",
    timestamp=Timestamp(key="t", unit="ms"),
)
verify = scheme.verify
sign = signer(scheme.sign)
_KINDS = ("post", "page", "member", "tag", "site")


def _kind(view: EventView) -> str | None:
    return next((kind for kind in _KINDS if isinstance(view.data, dict) and kind in view.data), None)


def _signed_at(view: EventView) -> int | None:
    """The signed time in milliseconds; None where there is none."""
    seconds = scheme.signed_at.get(view)
    return round(seconds * 1000) if isinstance(seconds, float) else None


def _put(data: Any, kind: str) -> Any:  # noqa: ANN401
    return {**data, "post": {"current": {"title": kind}, "previous": {}}}


events = one_event(
    id=first(join(body_digest(), Extractor(_signed_at, "the signed time")), body_digest()),
    type=first(Extractor(_kind, "the kind of object", put=_put), fixed("unknown")),
    occurred_at=first(
        *(field(f"$.{kind}.{state}.updated_at") for kind in _KINDS for state in ("current", "previous"))
    ),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(minutes=10),
    identity=told_apart_by(
        "signed time",
        known_from="https://github.com/TryGhost/Ghost/blob/main/ghost/core/core/server/services/webhooks/webhook-trigger.js",
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://docs.ghost.org/webhooks",
)
