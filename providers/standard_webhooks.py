"""Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256 (v1) or Ed25519 (v1a).

For every sender that follows the specification and has no module of its own; Svix's header names are taken too. The
id is the header `webhook-id` and is signed. The type is `$.type`, which the specification recommends and does not
demand; without it, or in a body that is no JSON, the type is `unknown`. Option `secret = "raw"` on the source for
senders that sign with the secret's text (`whsec_` included) and do not decode it; `tolerance` in seconds, 300
unless said otherwise.

https://www.standardwebhooks.com
"""

from datetime import timedelta

from hookonce.providers import kit

_type = kit.or_unknown("$.type", "$.event_type")
_time = kit.first("$.timestamp", kit.header("webhook-timestamp", "svix-timestamp"))


@kit.with_options("standard_webhooks")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    codec = given.choice("secret", ("whsec", *kit.CODECS))
    tolerance = given.seconds("tolerance", 300)
    scheme = kit.StandardWebhooks(secret=codec, tolerance=timedelta(seconds=tolerance))
    return kit.Configured(
        events=kit.one_event(id=scheme.id, type=_type, occurred_at=_time, read=kit.any_body),
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon=timedelta(days=5),
            disables_after="what its sender decides, mostly days of failures",
            setup_url="https://www.standardwebhooks.com",
        ),
    )
