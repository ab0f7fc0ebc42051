"""npm's registry hooks sign the body with HMAC-SHA256, hex behind `sha256=`, in `x-npm-signature`.

The registry may no longer offer new hooks; existing ones and compatible registries send them. There is no id:
the body is known by its fingerprint, `$.time` included. The type is `$.event`, the account the hook's owner.

https://docs.npmjs.com/cli/v6/commands/npm-hook
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.body_digest(), type=kit.or_unknown("$.event"), account="$.hookOwner.username", occurred_at="$.time"
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-npm-signature", prefix="sha256="),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.time"),
    setup_url="https://docs.npmjs.com/cli/v6/commands/npm-hook",
)
