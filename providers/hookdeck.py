"""Hookdeck forwards others' webhooks and signs the body with HMAC-SHA256, in base64.

While the project's secret is rotated a second signature is in `x-hookdeck-signature-2`; each header that is there is
tried, and one right signature is enough. The id is `x-hookdeck-eventid`, the same on every retry and not signed. The
body is the first sender's, of any kind, as is the method, and so is the type if there is one (`$.type`, `$.event`);
the account is the name of Hookdeck's source. Whether the first sender was verified is Hookdeck's business: set its
source up to do so.

https://hookdeck.com/docs/authentication#hookdeck-webhook-signature-verification
"""

from hookonce.providers import kit

scheme = kit.Hmac(header=("x-hookdeck-signature", "x-hookdeck-signature-2"), every=True, encoding="base64")
sign = kit.signer(scheme.sign, event_id="x-hookdeck-eventid")
events = kit.one_event(
    id=kit.or_body("header x-hookdeck-eventid"),
    type=kit.or_unknown("$.type", "$.event"),
    account="header x-hookdeck-source-name",
    read=kit.any_body_or_none,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="the body is the first sender's, who may repeat it",
    retry_horizon=kit.days(7),
    identity=kit.told_apart_by("header x-hookdeck-eventid"),
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    setup_url="https://dashboard.hookdeck.com/settings/project/secrets",
)
