"""Plaid sends a token (JWT, ES256) in `Plaid-Verification`, with the body's SHA-256 in `request_body_sha256`, in hex.

The secret is `client_id:secret` of the Plaid API, with which the key that the token names is asked for; or
the key itself, as the API gives it (a JWK) or PEM. The option `environment` is production, or sandbox. All of
Plaid's customers have the same keys, so act only on items that you know. A token is good for five minutes.
There is no id: one is made of type, code, item and the body's hash. Plaid sends JSON with spaces, and the raw
body counts. It retries for a day.

https://plaid.com/docs/api/webhooks/webhook-verification/
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from providers import Delivery
from providers.kit import body_digest, field, first, joined, one_event, signer
from providers.kit.asymmetric import PublicKey
from providers.kit.composite import checker, checker_of_either, parts_or_none
from providers.kit.fetched import Documents
from providers.kit.jws import fetched_keys
from providers.kit.jwt import Jwt
from providers.kit.options import Options

scheme = Jwt(
    header="plaid-verification",
    algorithms=("ES256",),
    body_hash=("request_body_sha256", "hex"),
    needs=("iat",),
    max_age=timedelta(minutes=5),
)
_PARTS: Final = ("client_id", "secret")
_check = checker_of_either(
    "'client_id:secret', or the key (a JWK, or PEM)", checker(*_PARTS), scheme.check_secret
)
FETCHES: Final = (r"https://(?:production|sandbox)\.plaid\.com/webhook_verification_key/get#[\w-]{1,64}",)
_kind = (field("$.webhook_type"), field("$.webhook_code"))
events = one_event(
    id=first(joined(*_kind, field("$.item_id"), body_digest()), joined(*_kind, body_digest())),
    type=joined(*_kind, by="."),
    account=field("$.item_id"),
)


def _verify(
    host: str, delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None
) -> None:
    credentials = [parts for secret in secrets if (parts := parts_or_none(secret, *_PARTS))][:1]
    pinned = [secret for secret in secrets if not parts_or_none(secret, *_PARTS)]
    found = [] if credentials and not any(pinned) else scheme.keys(pinned)
    header = scheme.token(delivery).header
    if header.get("alg") == "ES256":
        found += [key for pair in credentials for key in _asked(host, header.get("kid"), pair, keys)]
    scheme.check(delivery, found, now)


def _asked(host: str, kid: object, credentials: tuple[str, ...], keys: Documents) -> list[PublicKey]:
    """The key that the token names, from Plaid's API. Raises: Rejected, KeyNeeded."""
    post = json.dumps({"client_id": credentials[0], "secret": credentials[1], "key_id": kid}).encode()
    return fetched_keys(f"https://{host}/webhook_verification_key/get#{kid}", keys, FETCHES, kid, post)


def configure(options: Mapping[str, Any]) -> object:
    """Make the provider for an `environment`. Raises: ValueError listing every mistake."""
    given = Options(options, "plaid")
    host = given.choice("environment", ("production", "sandbox")) + ".plaid.com"
    given.done()
    return SimpleNamespace(
        verify=partial(_verify, host),
        sign=signer(scheme.sign),
        events=events,
        CHECK=_check,
        TOLERANCE=scheme.tolerance,
        RETRY_HORIZON=timedelta(days=1),
        FETCHES=FETCHES,
        SETUP="https://dashboard.plaid.com/developers/webhooks",
    )
