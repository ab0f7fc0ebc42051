"""ClickUp signs the body with HMAC-SHA256, in hex; the key is the secret that came with the new webhook.

A change has an id in `$.history_items`, which several events of one change share, so the event is part of the
id. What has no history (deletions, lists, spaces) is known by its fingerprint; of such events a second one that
says the same can't be told from a retry. There are five attempts.

https://developer.clickup.com/docs/webhooksignature
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(header="x-signature")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(joined(field("$.webhook_id"), field("$.event"), field("$.history_items[0].id")), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.webhook_id"),
    occurred_at=field("$.history_items[0].date"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://developer.clickup.com/docs/webhooks"
