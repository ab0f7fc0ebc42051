"""SonarQube, Server and Cloud, signs the body with HMAC-SHA256, in hex, if its webhook has a secret.

An analysis has a `taskId`; what comes because somebody reviewed an issue has none, but `changedAt`. So an event is
its whole body, in which these times are (`WebhookPayloadFactoryImpl.java`). The type is the status of the quality
gate. Nothing is tried again.

https://docs.sonarsource.com/sonarqube-server/latest/project-administration/webhooks/
"""

from hookonce.providers import kit

_status = kit.first("$.qualityGate.status", "$.status")
events = kit.one_event(
    id=kit.body_digest(),
    type=kit.or_unknown(kit.join(kit.fixed("quality_gate"), _status, by=".")),
    account="$.project.key",
    occurred_at=kit.first("$.changedAt", "$.analysedAt"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-sonar-webhook-hmac-sha256"),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by(
        "$.changedAt",
        "$.taskId",
        "body",
        because="every payload says when the gate changed, or which analysis it is of",
    ),
    setup_url="https://docs.sonarsource.com/sonarqube-server/latest/project-administration/webhooks/",
)
