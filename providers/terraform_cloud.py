"""HCP Terraform (Terraform Cloud) signs the body with HMAC-SHA512, in hex, if the notification has a token.

There is no id: it is made of the notification, the run, what happened to the run and when; for a health assessment,
of the notification and the assessment's result. A new notification is tried out with an event `verification` that
names no run, and wants a 200. The account is the organization. No retries are documented.

https://developer.hashicorp.com/terraform/cloud-docs/api-docs/notification-configurations
"""

from hookonce.providers import kit

_configuration = kit.field("$.notification_configuration_id")
_trigger = kit.field("$.notifications[0].trigger")
events = kit.one_event(
    id=kit.or_body(
        kit.join(
            _configuration,
            "$.run_id",
            _trigger,
            "$.notifications[0].run_status",
            "$.notifications[0].run_updated_at",
        ),
        kit.join(_configuration, "$.trigger", "$.details.new_assessment_result.id"),
    ),
    type=kit.or_unknown(_trigger, "$.trigger"),
    account="$.organization_name",
    occurred_at=kit.first("$.notifications[0].run_updated_at", "$.details.new_assessment_result.created_at"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-tfe-notification-signature", hash="sha512"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.notification_configuration_id + $.run_id + $.notifications[0].trigger + $.notifications[0].run_updated_at",
        "$.notification_configuration_id + $.trigger + $.details.new_assessment_result.id",
        "body",
        because="only trials of the URL name neither a run nor a result, and one is as good as another",
    ),
    setup_url="https://app.terraform.io/",
)
