"""TikTok signs `<t>.<body>` with HMAC-SHA256, in hex: `TikTok-Signature: t=…,s=…`; the key is the client secret.

There is no id: it is a digest of the event, the user, the time and the content (a string of JSON). The account
is the user, or the app. Retries for up to 72 hours.

https://developers.tiktok.com/doc/webhooks-verification
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, digest, field, first, fixed, one_event, signer

scheme = Hmac(header="tiktok-signature", key="s", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=digest(field("$.content"), field("$.user_openid"), field("$.create_time"), field("$.event")),
    type=first(field("$.event"), fixed("unknown")),
    account=first(field("$.user_openid"), field("$.client_key")),
    occurred_at=field("$.create_time"),
)
RETRY_HORIZON = timedelta(hours=72)
SETUP = "https://developers.tiktok.com/apps"
