"""Kinde sends a token (JWT, RS256) as the whole body; its claims are the event.

The option `jwks` is the URL of the JWK set under your own domain at Kinde, and a source needs no secret then; or the
secret is the key itself (PEM, a JWK or a JWK set), and nothing is fetched. The id is the claim `event_id`;
`webhook-id`, which is the same on every attempt too, is not signed. Nothing says until when a token is good.
Kinde tries for 36 hours until the answer is 200.

https://docs.kinde.com/integrate/webhooks/about-webhooks/
"""

from hookonce.providers import kit


@kit.with_options("kinde")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider for a domain's key set."""
    scheme = kit.Jwt(header="", algorithms=("RS256",), jwks=kit.declared_options.https_url(given, "jwks"))
    return kit.Configured(
        verify=scheme.verify_by_set,
        sign=kit.signer(scheme.sign, content="application/jwt"),
        events=kit.one_event(
            id="$.event_id",
            type="$.type",
            occurred_at=kit.first("$.event_timestamp", "$.timestamp"),
            read=scheme.said,
        ),
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon=kit.days(2),
            retries_on=kit.UNSUCCESSFUL,
            disables_after="three days of failures",
            identity=kit.told_apart_by("claim event_id"),
            setup_url="https://app.kinde.com/",
        ),
    )
