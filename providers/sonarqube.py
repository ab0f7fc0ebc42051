"""SonarQube, Server and Cloud, signs the body with HMAC-SHA256, in hex, if its webhook has a secret.

An analysis has a `taskId`; what comes because somebody reviewed an issue has none, but `changedAt`. So an event is
its whole body, in which these times are (`WebhookPayloadFactoryImpl.java`). The type is the status of the quality
gate. Nothing is tried again.

https://docs.sonarsource.com/sonarqube-server/latest/project-administration/webhooks/
"""

from datetime import timedelta

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

scheme = Hmac(header="x-sonar-webhook-hmac-sha256")
verify = scheme.verify
sign = signer(scheme.sign)
_status = first(field("$.qualityGate.status"), field("$.status"))
events = one_event(
    id=body_digest(),
    type=first(join(fixed("quality_gate"), _status, by="."), fixed("unknown")),
    account=field("$.project.key"),
    occurred_at=first(field("$.changedAt"), field("$.analysedAt")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by(
        "$.changedAt",
        "$.taskId",
        "body",
        because="every payload says when the gate changed, or which analysis it is of",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://docs.sonarsource.com/sonarqube-server/latest/project-administration/webhooks/",
)
