"""HCP Terraform (Terraform Cloud) signs the body with HMAC-SHA512, in hex, if the notification has a token.

There is no id: the notification, the run, what happened to it and when are the event; of a health assessment its
result is. A new notification is tried out with an event `verification` that names no run, and wants a 200. The account
is the organization. No retries are documented.

https://developer.hashicorp.com/terraform/cloud-docs/api-docs/notification-configurations
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-tfe-notification-signature", hash="sha512")
verify = scheme.verify
sign = signer(scheme.sign)
_configuration = field("$.notification_configuration_id")
_trigger = field("$.notifications[0].trigger")
events = one_event(
    id=first(
        join(
            _configuration,
            field("$.run_id"),
            _trigger,
            field("$.notifications[0].run_status"),
            field("$.notifications[0].run_updated_at"),
        ),
        join(_configuration, field("$.trigger"), field("$.details.new_assessment_result.id")),
        body_digest(),
    ),
    type=first(_trigger, field("$.trigger"), fixed("unknown")),
    account=field("$.organization_name"),
    occurred_at=first(
        field("$.notifications[0].run_updated_at"), field("$.details.new_assessment_result.created_at")
    ),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "$.notification_configuration_id + $.run_id + $.notifications[0].trigger + $.notifications[0].run_updated_at",
        "$.notification_configuration_id + $.trigger + $.details.new_assessment_result.id",
        "body",
        because="only trials of the URL name neither a run nor a result, and one is as good as another",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://app.terraform.io/",
)
