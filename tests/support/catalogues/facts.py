"""What the vendors say of their events besides the shape: which values are new for each event, and for each attempt.

`Facts.event` names the values that tell two events about the same object apart, as the vendor documents it: an id in
the body, or the header of an id, which `sign` writes. Without one it is the times in the body that move.
`Facts.retry` names what another attempt changes. None of this is read from our modules.
"""

from dataclasses import dataclass

HEADER = "header"


@dataclass(frozen=True)
class Facts:
    """The places of a sender's event id and of what a retry changes.

    word: the kind's first word is what the sender's header says, and the rest stands in the body
    """

    event: tuple[str, ...] = ()
    retry: tuple[str, ...] = ()
    word: bool = False


FACTS = {
    "adyen": Facts(("$.notificationItems[0].NotificationRequestItem.pspReference",)),
    "anthropic_managed_agents": Facts((HEADER,)),
    "asana": Facts(),
    "auth0": Facts(("$.log_id", "$.data.log_id")),
    "azure_devops": Facts(("$.id",)),
    "azure_event_grid": Facts(("$[0].id",)),
    "bigcommerce": Facts((HEADER,)),
    "bitbucket_cloud": Facts((HEADER,)),
    "bot_framework": Facts(("$.id",)),
    "box": Facts(("$.id",)),
    "cal_com": Facts(),
    "calendly": Facts(),
    "chargebee": Facts(("$.id",), ("$.webhook_status",)),
    "checkout_com": Facts(("$.id",)),
    "clerk": Facts((HEADER,)),
    "coinbase_commerce": Facts(("$.event.id",), ("$.attempt_number", "$.id", "$.scheduled_for")),
    "contentful": Facts((HEADER,)),
    "discord": Facts(),
    "docusign": Facts((), ("$.retryCount",)),
    "dub": Facts(("$.id",)),
    "easypost": Facts(("$.id",), ("$.pending_urls", "$.completed_urls", "$.status", "$.updated_at")),
    "figma": Facts((), ("$.retries",)),
    "finch": Facts((HEADER,)),
    "gitea_forgejo": Facts((HEADER,)),
    "github": Facts((HEADER,), word=True),
    "gitlab": Facts((HEADER,), word=True),
    "gocardless": Facts(("$.events[0].id",), ("$.meta.webhook_id",)),
    "hubspot": Facts(("$[0].eventId",), ("$[0].attemptNumber",)),
    "increase": Facts(("$.id",)),
    "intercom": Facts(("$.id",), ("$.delivery_attempts", "$.delivery_status", "$.delivered_at")),
    "jira": Facts((HEADER,)),
    "kontent_ai": Facts(),
    "lemon_squeezy": Facts(),
    "line": Facts(("$.events[0].webhookEventId",), ("$.events[0].deliveryContext.isRedelivery",)),
    "linear": Facts((HEADER,), ("$.webhookTimestamp",)),
    "lithic": Facts((HEADER,)),
    "liveblocks": Facts((HEADER,)),
    "mailgun": Facts(("$.event-data.id",), ("$.signature.token", "$.signature.timestamp")),
    "meta": Facts(("$.entry[0].changes[0].value.messages[0].id",)),
    "mux": Facts(("$.id",), ("$.attempts",)),
    "notion": Facts(("$.id",), ("$.attempt_number",)),
    "okta": Facts(("$.data.events[0].uuid",), ("$.eventTime",)),
    "onfido": Facts(),
    "openai": Facts((HEADER,)),
    "paddle_billing": Facts(("$.event_id",), ("$.notification_id",)),
    "pagerduty": Facts(("$.event.id",)),
    "paypal": Facts(("$.id",)),
    "plaid": Facts(),
    "polar": Facts((HEADER,)),
    "postmark": Facts(("$.MessageID",)),
    "quickbooks": Facts(),
    "razorpay": Facts((HEADER,)),
    "resend": Facts((HEADER,)),
    "revenuecat": Facts(("$.event.id",)),
    "sanity": Facts((HEADER,)),
    "sentry": Facts((HEADER,), word=True),
    "shippo": Facts(),
    "shopify": Facts((HEADER,)),
    "slack": Facts(("$.event_id",)),
    "square": Facts(("$.event_id",)),
    "stream": Facts((HEADER,)),
    "stripe": Facts(("$.id",), ("$.pending_webhooks",)),
    "telegram": Facts(("$.update_id",)),
    "telnyx": Facts(("$.data.id",), ("$.meta.attempt", "$.meta.delivered_to")),
    "trello": Facts(("$.action.id",)),
    "twilio_sendgrid_events": Facts(("$[0].sg_event_id",)),
    "twitch": Facts((HEADER,)),
    "typeform": Facts(("$.event_id",)),
    "vercel": Facts(("$.id",)),
    "woocommerce": Facts((HEADER,)),
    "workos": Facts(("$.id",)),
    "xero": Facts(),
    "zendesk": Facts(("$.id",)),
    "zoom": Facts(),
}
