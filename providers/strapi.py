"""Strapi brings the headers that its webhook is given, a bearer token as a rule, and signs nothing.

Another header is `in = "header:X-Token"`. There is no id: an event is its body, with `$.createdAt`, the millisecond
at which it was made (`webhook-runner`). It is sent once and not tried again. Accounts are not told; media and
entries have their own ids.

https://docs.strapi.io/cms/backend-customization/webhooks
"""

from hookonce.providers import kit

_TYPE = "x-strapi-event"
events = kit.one_event(
    id=kit.body_digest(), type=kit.or_unknown("$.event", kit.header(_TYPE)), occurred_at="$.createdAt"
)
configure = kit.token_sender(
    "strapi",
    "bearer",
    events=events,
    wrap=lambda sign: kit.signer(sign, type=_TYPE, default_type="entry.create"),
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon=kit.hours(1),
        identity=kit.told_apart_by(
            "$.createdAt", "body", because="every body has the millisecond at which it was made"
        ),
        setup_url="https://docs.strapi.io/cms/backend-customization/webhooks",
    ),
)
