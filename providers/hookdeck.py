"""Hookdeck forwards others' webhooks and signs the body with HMAC-SHA256, in base64.

While the project's secret is rotated a second signature is in `x-hookdeck-signature-2`; either will do. The
id is `x-hookdeck-eventid`, the same on every retry and not signed. The body is the first sender's, of any
kind, as is the method, and so is the type if there is one (`$.type`, `$.event`); the account is the name of
Hookdeck's source. Whether the first sender was verified is Hookdeck's business: set its source up to do so.

https://hookdeck.com/docs/authentication#hookdeck-webhook-signature-verification
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    any_body_or_none,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header=("x-hookdeck-signature", "x-hookdeck-signature-2"), every=True, encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-hookdeck-eventid")
events = one_event(
    id=first(header("x-hookdeck-eventid"), body_digest()),
    type=first(field("$.type"), field("$.event"), fixed("unknown")),
    account=header("x-hookdeck-source-name"),
    read=any_body_or_none,
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=7),
    identity=told_apart_by("header x-hookdeck-eventid"),
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.hookdeck.com/settings/project/secrets",
)
