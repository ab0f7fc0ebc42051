"""LaunchDarkly signs the body with HMAC-SHA256, in hex, in `X-LD-Signature`.

The id is `$._id`, the audit log entry's; the type is the kind of resource and the verb, `flag.turned on the
flag`, as LaunchDarkly words it. One retry.

https://docs.launchdarkly.com/integrations/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$._id"),
    type=kit.or_unknown(kit.join("$.kind", "$.titleVerb", by="."), "$.kind"),
    account="$._accountId",
    occurred_at="$.date",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-ld-signature"),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$._id"),
    setup_url="https://app.launchdarkly.com/settings/integrations",
)
