"""Clio (Manage) signs the body with HMAC-SHA256, in hex, with a secret that it hands out when a webhook is made.

That first request has `X-Hook-Secret` and no signature; the same header in the answer accepts it, as for `asana`. There
is no id: an event is its body, in which the record's `etag` changes with the record. A webhook ends after three days
unless it is made to last (31 at most) or renewed.

https://docs.developers.clio.com/api-reference/#tag/Webhooks
"""

from hookonce.providers import kit

handshake = kit.hands_out_a_secret("x-hook-secret", beside="x-hook-signature")
events = kit.one_event(id=kit.body_digest(), type=kit.or_unknown("$.meta.event"), account="$.meta.webhook_id")
sender = kit.Sender(
    scheme=kit.Hmac(header="x-hook-signature"),
    id_is_signed=True,
    retry_horizon="its page does not say for how long it tries again",
    identity=kit.told_apart_by("body", because="the etag of a record is another after each change"),
    setup_url="https://docs.developers.clio.com/api-reference/#tag/Webhooks",
)
