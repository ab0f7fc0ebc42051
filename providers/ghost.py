"""Ghost signs `<body><t>` with HMAC-SHA256, in hex: `X-Ghost-Signature: sha256=…, t=…`, the time in milliseconds.

So do all since version 5.87; those before sign the body alone and are refused. There is neither id nor type: the
body holds what was changed, `$.post.current` and `previous`, and the same change may be news for several webhooks
that end here. The signed time tells them apart: Ghost tries six times in a row, with the headers of the first
(`services/webhooks/webhook-trigger.js`). The type is the kind of object; a source for each event knows more.

https://docs.ghost.org/webhooks
"""

from typing import Any

from hookonce.providers import kit

scheme = kit.Hmac(
    header="x-ghost-signature",
    key="sha256",
    signed="{body}{timestamp}",
    timestamp=kit.Timestamp(key="t", unit="ms"),
)
_KINDS = ("post", "page", "member", "tag", "site")


def _kind(view: kit.EventView) -> str | None:
    return next((kind for kind in _KINDS if isinstance(view.data, dict) and kind in view.data), None)


def _signed_at(view: kit.EventView) -> int | None:
    """The signed time in milliseconds; None where there is none."""
    seconds = scheme.signed_at.get(view)
    return round(seconds * 1000) if isinstance(seconds, float) else None


def _put(data: Any, kind: str) -> Any:  # noqa: ANN401
    return {**data, "post": {"current": {"title": kind}, "previous": {}}}


events = kit.one_event(
    id=kit.or_body(kit.join(kit.body_digest(), kit.Extractor(_signed_at, "the signed time"))),
    type=kit.or_unknown(kit.Extractor(_kind, "the kind of object", put=_put)),
    occurred_at=kit.first(
        *(kit.field(f"$.{kind}.{state}.updated_at") for kind in _KINDS for state in ("current", "previous"))
    ),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.minutes(10),
    identity=kit.told_apart_by(
        "signed time",
        known_from="https://github.com/TryGhost/Ghost/blob/main/ghost/core/core/server/services/webhooks/webhook-trigger.js",
    ),
    setup_url="https://docs.ghost.org/webhooks",
)
