"""Patreon signs the body with HMAC-MD5, in hex.

The type is `X-Patreon-Event` (members:pledge:create), which is not signed. There is neither id nor time of the event:
the body is what the object looks like now, and the same body comes again for another change that leads back to it. So
the type, the body and ten minutes of receipt are the event, and what Patreon tries again later than that is new.

https://docs.patreon.com/#webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-patreon-signature", hash="md5")
verify = scheme.verify
sign = signer(scheme.sign, type="x-patreon-event", default_type="members:update")
_event = header("x-patreon-event")
events = one_event(
    id=first(join(_event, body_digest()), body_digest()),
    type=first(_event, fixed("unknown")),
    account=field("$.data.relationships.campaign.data.id"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=7),
    identity=told_apart_by("receipt"),
    id_period=timedelta(minutes=10),
    check_secret=scheme.check_secret,
    setup_url="https://www.patreon.com/portal/registration/register-webhooks",
)
