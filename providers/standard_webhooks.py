"""Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256 (v1) or Ed25519 (v1a).

For every sender that follows the specification and has no module of its own; Svix's header names are taken too. The
id is the header `webhook-id` and is signed. The type is `$.type`, which the specification recommends and does not
demand; without it, or in a body that is no JSON, the type is `unknown`. Option `secret = "raw"` on the source for
senders that sign with the secret's text (`whsec_` included) and do not decode it; `tolerance` in seconds, 300
unless said otherwise.

https://www.standardwebhooks.com
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hookonce.providers.kit import (
    CODECS,
    Configured,
    Sender,
    StandardWebhooks,
    any_body,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
)
from hookonce.providers.kit.registry.options import Options

_type = first(field("$.type"), field("$.event_type"), fixed("unknown"))
_time = first(field("$.timestamp"), header("webhook-timestamp", "svix-timestamp"))


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "standard_webhooks")
    codec = given.choice("secret", ("whsec", *CODECS))
    tolerance = given.seconds("tolerance", 300)
    given.done()
    scheme = StandardWebhooks(secret=codec, tolerance=timedelta(seconds=tolerance))
    return Configured(
        verify=scheme.verify,
        sign=signer(scheme.sign),
        events=one_event(id=scheme.id, type=_type, occurred_at=_time, read=any_body),
        sender=Sender(
            id_is_signed=True,
            retry_horizon=timedelta(days=5),
            disables_after="what its sender decides, mostly days of failures",
            identity=scheme.identity,
            tolerance=scheme.tolerance,
            check_secret=scheme.check_secret,
            setup_url="https://www.standardwebhooks.com",
        ),
    )
