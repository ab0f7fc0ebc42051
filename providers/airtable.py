"""Airtable signs the body with HMAC-SHA256, in hex behind `hmac-sha256=`; the key is base64 (`macSecretBase64`).

A delivery only says that a base has changed: fetch the payloads from the API and keep your cursor. It has no
id, so that is the webhook's id and the time. A webhook ends seven days after it was made unless refreshed.

https://airtable.com/developers/web/api/webhooks-overview
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
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
    header="x-airtable-content-mac",
    prefix="hmac-sha256=",
    secret="base64",  # noqa: S106  a codec's name
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(join(field("$.webhook.id"), field("$.timestamp")), body_digest()),
    type=fixed("ping"),
    account=field("$.base.id"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=7),
    disables_after="a week of failures",
    identity=told_apart_by("$.webhook.id + $.timestamp"),
    check_secret=scheme.check_secret,
    setup_url="https://airtable.com/developers/web/api/create-a-webhook",
)
