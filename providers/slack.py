"""Slack signs `v0:<timestamp>:<body>` with HMAC-SHA256, in hex behind `v0=`.

Events are JSON with the id in `$.event_id`; the type is that of the inner event. Buttons, dialogs and slash commands
are forms, signed alike, and come once: their id is `trigger_id`; the type of a command is the command itself; they
are answered with an empty body, anything else would be shown or refused. What has neither id is known by its
fingerprint. The URL is probed with a signed `url_verification`, whose challenge is sent back as it came: only Slack
gets an answer, and the answer signs nothing. Slack waits 3 s and retries 3 times within 6 minutes.

https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

from collections.abc import Sequence
from typing import Any

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Hmac(
    header="x-slack-signature",
    prefix="v0=",
    signed="v0:{timestamp}:{body}",
    timestamp=kit.Timestamp(header="x-slack-request-timestamp"),
)


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever Slack sent
    if delivery.body[:1] in (b"{", b"["):
        return kit.json_body(delivery)
    fields = kit.form_body(delivery)
    return kit.parse_json(fields["payload"]) if "payload" in fields else fields


events = kit.one_event(
    id=kit.or_body("$.event_id", "$.trigger_id"),
    type=kit.or_unknown("$.event.type", "$.command", "$.type"),
    account=kit.first("$.team_id", "$.team.id"),
    occurred_at="$.event_time",
    read=_read,
)


def _answer(delivery: Delivery) -> Reply | None:
    """Nothing at all for what a person did: Slack would show our JSON, or say that the dialog can't be understood."""
    return None if delivery.body[:1] in {b"{", b"["} else Reply()


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a probe that Slack signed; None for anything else, forged probes included."""
    if b"url_verification" not in delivery.body and b"ssl_check" not in delivery.body:
        return None
    probe = kit.authentic_body(scheme.authentic, delivery, secrets, _read)
    if not isinstance(probe, dict):
        return None
    if probe.get("type") == "url_verification":
        return kit.same_challenge(probe.get("challenge"))
    return Reply() if probe.get("ssl_check") == "1" else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    disables_after="an hour in which more than 95 % of the deliveries failed",
    identity=kit.told_apart_by("$.event_id", "$.payload.trigger_id", "$.trigger_id"),
    accepted=_answer,
    setup_url="https://api.slack.com/apps",
)
