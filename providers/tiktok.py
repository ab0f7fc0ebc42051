"""TikTok signs `<t>.<body>` with HMAC-SHA256, in hex: `TikTok-Signature: t=…,s=…`; the key is the client secret.

There is no id: it is a digest of the event, the user, the time and the content (a string of JSON). The account
is the user, or the app. Retries for up to 72 hours.

https://developers.tiktok.com/doc/webhooks-verification
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.digest("$.content", "$.user_openid", "$.create_time", "$.event"),
    type=kit.or_unknown("$.event"),
    account=kit.first("$.user_openid", "$.client_key"),
    occurred_at="$.create_time",
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="tiktok-signature", key="s", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="t")
    ),
    id_is_signed=True,
    retry_horizon=kit.hours(72),
    identity=kit.told_apart_by("$.create_time + $.event + $.content"),
    setup_url="https://developers.tiktok.com/apps",
)
