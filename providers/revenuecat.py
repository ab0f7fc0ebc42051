"""RevenueCat brings the authorization header that was configured, and signs nothing.

The id is `$.event.id`, the same on every attempt; RevenueCat tries five more times, within three hours. Its
TEST is an event too.

https://www.revenuecat.com/docs/integrations/webhooks
"""

from datetime import timedelta

from providers.kit import Token, body_digest, field, first, fixed, one_event, signer

scheme = Token(header="authorization")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.event.id"), body_digest()),
    type=first(field("$.event.type"), fixed("unknown")),
    account=field("$.event.app_id"),
    occurred_at=field("$.event.event_timestamp_ms"),
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(hours=6)
SETUP = "https://app.revenuecat.com"
