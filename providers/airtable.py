"""Airtable signs the body with HMAC-SHA256, in hex behind `hmac-sha256=`; the key is base64 (`macSecretBase64`).

A delivery only says that a base has changed: fetch the payloads from the API and keep your cursor. It has no
id, so that is the webhook's id and the time. A webhook ends seven days after it was made unless refreshed.

https://airtable.com/developers/web/api/webhooks-overview
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(
    header="x-airtable-content-mac",
    prefix="hmac-sha256=",
    secret="base64",  # noqa: S106  a codec's name
)
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(joined(field("$.webhook.id"), field("$.timestamp")), body_digest()),
    type=fixed("ping"),
    account=field("$.base.id"),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=7)
SETUP = "https://airtable.com/developers/web/api/create-a-webhook"
