"""npm's registry hooks sign the body with HMAC-SHA256, hex behind `sha256=`, in `x-npm-signature`.

The registry may no longer offer new hooks; existing ones and compatible registries send them. There is no id:
the body is known by its fingerprint, `$.time` included. The type is `$.event`, the account the hook's owner.

https://docs.npmjs.com/cli/v6/commands/npm-hook
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-npm-signature", prefix="sha256=")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=body_digest(),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.hookOwner.username"),
    occurred_at=field("$.time"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.time"),
    check_secret=scheme.check_secret,
    setup_url="https://docs.npmjs.com/cli/v6/commands/npm-hook",
)
