"""Kinde sends a token (JWT, RS256) as the whole body; its claims are the event.

The option `jwks` is the URL of the JWK set under your own domain at Kinde, and a source needs no secret then; or the
secret is the key itself (PEM, a JWK or a JWK set), and nothing is fetched. The id is the claim `event_id`;
`webhook-id`, which is the same on every attempt too, is not signed. Nothing says until when a token is good.

https://docs.kinde.com/integrate/webhooks/about-webhooks/
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from hookonce.providers.kit import (
    Configured,
    Sender,
    delivering,
    field,
    first,
    one_event,
    signature_in_body,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.registry.declared_options import https_url
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.schemes.jwt import Jwt

_sign: Final = signer(signature_in_body.sign, content="application/jwt")


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider for a domain's key set. Raises: ValueError listing every mistake."""
    given = Options(options, "kinde")
    scheme = Jwt(header="", algorithms=("RS256",), jwks=https_url(given, "jwks"))
    given.done()
    return Configured(
        verify=scheme.verify_by_set,
        sign=_sign,
        events=one_event(
            id=field("$.event_id"),
            type=field("$.type"),
            occurred_at=first(field("$.event_timestamp"), field("$.timestamp")),
            read=scheme.said,
        ),
        sender=Sender(
            id_is_signed=True,
            retry_horizon=None,
            horizon_unknown="not known: no statement of its own is at hand",
            identity=told_apart_by("claim event_id"),
            max_body=1 << 20,
            fetches=(re.escape(scheme.jwks),) if scheme.jwks else (),
            needs_secret=not scheme.jwks,
            check_secret=scheme.check_secret,
            deliver=delivering(scheme.deliver, _sign),
            setup_url="https://app.kinde.com/",
        ),
    )
