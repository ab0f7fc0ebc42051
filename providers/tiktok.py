"""TikTok signs `<t>.<body>` with HMAC-SHA256, in hex: `TikTok-Signature: t=…,s=…`; the key is the client secret.

There is no id: it is a digest of the event, the user, the time and the content (a string of JSON). The account
is the user, or the app. Retries for up to 72 hours.

https://developers.tiktok.com/doc/webhooks-verification
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="tiktok-signature", key="s", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=digest(field("$.content"), field("$.user_openid"), field("$.create_time"), field("$.event")),
    type=first(field("$.event"), fixed("unknown")),
    account=first(field("$.user_openid"), field("$.client_key")),
    occurred_at=field("$.create_time"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=72),
    identity=told_apart_by("$.create_time + $.event + $.content"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://developers.tiktok.com/apps",
)
