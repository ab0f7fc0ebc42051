"""Fireblocks (webhooks v2) sends a detached token (JWS, RS512) of the body, in `Fireblocks-Webhook-Signature`.

A source needs no secret: the token names its key, in the JWK set of the option `environment` (us, eu, eu2 or sandbox).
The key itself may be the secret instead (PEM, a JWK or a JWK set); then nothing is fetched. All of Fireblocks'
customers have the same keys, so act only on workspaces that you know (`event.account`). No time is signed, so that only
the id, `$.id`, tells a replay. `Fireblocks-Signature`, the former scheme, is not looked at.

https://developers.fireblocks.com/reference/validating-webhooks
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from hookonce.providers.kit import Configured, Sender, field, one_event, signer, told_apart_by
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.schemes.jwt import Jwt

_HOSTS: Final = {"us": "keys", "eu": "eu-keys", "eu2": "eu2-keys", "sandbox": "sandbox-keys"}
events = one_event(
    id=field("$.id"),
    type=field("$.eventType"),
    account=field("$.workspaceId"),
    occurred_at=field("$.createdAt"),
)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider for an `environment`. Raises: ValueError listing every mistake."""
    given = Options(options, "fireblocks")
    host = _HOSTS[given.choice("environment", tuple(_HOSTS))]
    given.done()
    scheme = Jwt(
        header="fireblocks-webhook-signature",
        detached=True,
        algorithms=("RS512",),
        jwks=f"https://{host}.fireblocks.io/.well-known/jwks.json",
    )
    return Configured(
        verify=scheme.verify_by_set,
        sign=signer(scheme.sign),
        events=events,
        sender=Sender(
            id_is_signed=True,
            retry_horizon=None,
            horizon_unknown="not known: no statement of its own is at hand",
            identity=told_apart_by("$.id"),
            fetches=(re.escape(scheme.jwks),),
            needs_secret=False,
            check_secret=scheme.check_secret,
            setup_url="https://console.fireblocks.io/",
        ),
    )
