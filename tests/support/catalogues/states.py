"""Two kinds of each vendor's catalogue that hold one object: an older state of it, and a newer one.

`ENVELOPES` names where an event's own time is called as the time at which an object was made: at the top, unless it is
said otherwise. All other times of making stay as they are in the newer state.
"""

ENVELOPES = {"coinbase_commerce": "$.event"}
STATES = {
    "anthropic_managed_agents": ("agent.created", "agent.updated"),
    "bigcommerce": ("store/order/created", "store/order/updated"),
    "bitbucket_cloud": ("pullrequest:created", "pullrequest:updated"),
    "box": ("FILE.RENAMED", "FILE.TRASHED"),
    "cal_com": ("BOOKING_CREATED", "BOOKING_CANCELLED"),
    "calendly": ("invitee.created", "invitee.canceled"),
    "chargebee": ("subscription_created", "subscription_changed"),
    "clerk": ("organization.created", "organization.updated"),
    "coinbase_commerce": ("charge:created", "charge:confirmed"),
    "docusign": ("envelope-sent", "envelope-completed"),
    "dub": ("link.created", "link.updated"),
    "easypost": ("batch.created", "batch.updated"),
    "gitea_forgejo": ("issues", "issue_label"),
    "github": ("issues.opened", "issues.edited"),
    "gitlab": ("Issue Hook.issue", "Issue Hook.issue"),
    "increase": ("account.created", "account.updated"),
    "intercom": ("contact.user.created", "contact.user.updated"),
    "jira": ("jira:issue_created", "jira:issue_updated"),
    "lemon_squeezy": ("subscription_created", "subscription_updated"),
    "linear": ("Issue.create", "Issue.update"),
    "mux": ("video.asset.created", "video.asset.ready"),
    "notion": ("page.created", "page.properties_updated"),
    "paddle_billing": ("subscription.created", "subscription.updated"),
    "pagerduty": ("incident.triggered", "incident.acknowledged"),
    "paypal": ("BILLING.SUBSCRIPTION.CREATED", "BILLING.SUBSCRIPTION.ACTIVATED"),
    "polar": ("customer.created", "customer.updated"),
    "razorpay": ("payment.authorized", "payment.captured"),
    "sanity": ("create", "update"),
    "shopify": ("orders/create", "orders/updated"),
    "square": ("payment.created", "payment.updated"),
    "stripe": ("customer.created", "customer.updated"),
    "telnyx": ("message.sent", "message.finalized"),
    "workos": ("user.created", "user.updated"),
    "zendesk": ("zen:event-type:ticket.created", "zen:event-type:ticket.group_assignment_changed"),
}
