"""Plaid sends a token (JWT, ES256) in `Plaid-Verification`, with the body's SHA-256 in `request_body_sha256`, in hex.

The secret is `client_id:secret` of the Plaid API, with which the key that the token names is asked for; or the key
itself, as the API gives it (a JWK) or PEM. The option `environment` is production, or sandbox. All of Plaid's
customers have the same keys, so act only on items that you know. A token is good for five minutes. There is no id,
and often no time (`SYNC_UPDATES_AVAILABLE` names the item and no more): the id is made of type, code, item, the
body's hash and when the token was signed. As a token is good for five minutes and Plaid retries for a day, each
attempt has one of its own; the first pause is 30 seconds after 10 for the answer, so what was signed within 45
seconds is one event. Plaid sends JSON with spaces, and the hash is that of the raw body.

https://plaid.com/docs/api/webhooks/webhook-verification/
"""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

from hookonce.providers import Delivery, KeyNeeded, kit

scheme = kit.Jwt(
    header="plaid-verification",
    algorithms=("ES256",),
    body_hash=("request_body_sha256", "hex"),
    needs=("iat",),
    max_age=kit.minutes(5),
)
_PARTS: Final = ("client_id", "secret")
_check = kit.checker_of_either(
    "'client_id:secret', or the key (a JWK, or PEM)", kit.checker(*_PARTS), scheme.check_secret
)
_FETCHES: Final = (
    r"https://(?:production|sandbox)\.plaid\.com/webhook_verification_key/get#[\w-]{1,64}(?:\.[12])?",
)
_MAX_CREDENTIALS: Final = 3
"""As many as are asked with for one delivery; the old ones and the new are two."""
_kind = (kit.field("$.webhook_type"), kit.field("$.webhook_code"))
_said = kit.first(kit.join(*_kind, "$.item_id", kit.body_digest()), kit.join(*_kind, kit.body_digest()))
events = kit.one_event(
    id=_said,
    attempts=kit.Attempts(kit.claim("iat", header="plaid-verification"), within=kit.seconds(45)),
    type=kit.join(*_kind, by="."),
    account="$.item_id",
)


def _verify(
    host: str, delivery: Delivery, secrets: Sequence[str], now: datetime, keys: kit.Documents = None
) -> None:
    credentials = [parts for secret in secrets if (parts := kit.parts_or_none(secret, *_PARTS))][
        :_MAX_CREDENTIALS
    ]
    pinned = [secret for secret in secrets if not kit.parts_or_none(secret, *_PARTS)]
    found = [] if credentials and not any(pinned) else scheme.keys(pinned)
    header = scheme.token(delivery).header
    if header.get("alg") == "ES256":
        found += _asked(host, header.get("kid"), credentials, keys)
    scheme.check(delivery, found, now)


def _asked(
    host: str, kid: object, credentials: list[tuple[str, ...]], keys: kit.Documents
) -> list[kit.public_keys.PublicKey]:
    """The key that the token names, from Plaid's API, to whichever credentials it is given.

    Raises: Rejected, KeyNeeded.
    """
    lacking: KeyNeeded | None = None
    for number, (client_id, secret) in enumerate(credentials):
        post = json.dumps({"client_id": client_id, "secret": secret, "key_id": kid}).encode()
        url = f"https://{host}/webhook_verification_key/get#{kid}" + (f".{number}" if number else "")
        try:
            return kit.jws.fetched_keys(url, keys, _FETCHES, kid, post)
        except KeyNeeded as needed:
            if keys is None or url not in keys:
                raise
            lacking = lacking or needed
    if lacking:
        raise lacking
    return []


@kit.with_options("plaid")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider for an `environment`."""
    host = given.choice("environment", ("production", "sandbox")) + ".plaid.com"
    return kit.Configured(
        verify=partial(_verify, host),
        sign=kit.signer(scheme.sign),
        events=events,
        sender=kit.Sender(
            proof=scheme.proof,
            id_is_signed=True,
            body_is_unsigned=False,
            retry_horizon=kit.days(1),
            identity=kit.told_apart_by(
                "signed period", known_from="https://plaid.com/docs/api/webhooks/#webhook-retries"
            ),
            tolerance=scheme.tolerance,
            fetches=_FETCHES,
            check_secret=_check,
            mode=kit.mode("$.environment", live=("production",)),
            setup_url="https://dashboard.plaid.com/developers/webhooks",
        ),
    )
