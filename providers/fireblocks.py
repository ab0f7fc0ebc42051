"""Fireblocks (webhooks v2) sends a detached token (JWS, RS512) of the body, in `Fireblocks-Webhook-Signature`.

A source needs no secret: the token names its key, in the JWK set of the option `environment` (us, eu, eu2 or sandbox).
The key itself may be the secret instead (PEM, a JWK or a JWK set); then nothing is fetched. All of Fireblocks'
customers have the same keys, so act only on workspaces that you know (`event.account`). No time is signed, so that only
the id, `$.id`, tells a replay. `Fireblocks-Signature`, the former scheme, is not looked at. After 408, 429 and 5xx it
comes again nine times, within eight hours (https://developers.fireblocks.com/reference/webhooks-gettingstarted-responsesretries).

https://developers.fireblocks.com/reference/validating-webhooks
"""

from typing import Final

from hookonce.providers import kit

_HOSTS: Final = {"us": "keys", "eu": "eu-keys", "eu2": "eu2-keys", "sandbox": "sandbox-keys"}
events = kit.one_event(id="$.id", type="$.eventType", account="$.workspaceId", occurred_at="$.createdAt")


@kit.with_options("fireblocks")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider for an `environment`."""
    host = _HOSTS[given.choice("environment", tuple(_HOSTS))]
    scheme = kit.Jwt(
        header="fireblocks-webhook-signature",
        detached=True,
        algorithms=("RS512",),
        jwks=f"https://{host}.fireblocks.io/.well-known/jwks.json",
    )
    return kit.Configured(
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon=kit.days(1),
            retries_on=(408, *kit.FAILURES),
            identity=kit.told_apart_by("$.id"),
            setup_url="https://console.fireblocks.io/",
        ),
    )
