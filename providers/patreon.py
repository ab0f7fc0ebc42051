"""Patreon signs the body with HMAC-MD5, in hex.

The type is `X-Patreon-Event` (members:pledge:create), which is not signed. There is neither id nor time of the event:
the body is what the object looks like now, and the same body comes again for another change that leads back to it. So
the type, the body and ten minutes of receipt are the event, and what Patreon tries again later than that is new.

https://docs.patreon.com/#webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-patreon-signature", hash="md5")
sign = kit.signer(scheme.sign, type="x-patreon-event", default_type="members:update")
_event = kit.header("x-patreon-event")
events = kit.one_event(
    id=kit.or_body(kit.join(_event, kit.body_digest())),
    type=kit.or_unknown(_event),
    account="$.data.relationships.campaign.data.id",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="a pledge that is changed and changed back brings one body",
    retry_horizon=kit.days(7),
    identity=kit.told_apart_by("receipt"),
    id_period=kit.minutes(10),
    setup_url="https://www.patreon.com/portal/registration/register-webhooks",
)
