"""Buildkite signs `<timestamp>.<body>` with HMAC-SHA256, in hex, or sends the token itself: as the webhook is set.

The key of the signature is that same token. A token says nothing about the body, so this module counts as unsigned as
a whole; choose the signature. There is no id: it is made of the event, the build or job, its state and its times; a
build that blocks or whose job is retried finishes again. What else the body tells may be later than the event. For
agents and pings the id is made of the body and of when it was signed, a minute more or less.

https://buildkite.com/docs/apis/webhooks/pipelines
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

_token = kit.Token(header="x-buildkite-token")
scheme = kit.Hmac(
    header="x-buildkite-signature",
    key="signature",
    signed="{timestamp}.{body}",
    timestamp=kit.Timestamp(key="timestamp"),
)
sign = kit.signer(scheme.sign, type="x-buildkite-event")
_event = kit.field("$.event")
_job = kit.join(_event, "$.job.id", "$.job.state")
_build = kit.join(_event, "$.build.id", "$.build.state")
_MOMENTS = (
    "blocked",
    "blocked_state",
    "started_at",
    "finished_at",
    "canceled_at",
    "retries_count",
    "unblocked_at",
)


def _state_of(thing: str, known: kit.Extractor) -> kit.Extractor:
    """`known`, with all that tells one time that a thing got into a state from another; None where nothing does."""
    return kit.join(known, kit.digest(*(kit.field(f"$.{thing}.{name}") for name in _MOMENTS)))


events = kit.one_event(
    id=kit.first(_state_of("job", _job), _job, _state_of("build", _build), _build),
    undated=kit.body_digest(),
    attempts=kit.Attempts(scheme.signed_at, within=kit.minutes(1)),
    type=kit.or_unknown("$.event", "header x-buildkite-event"),
    account="$.pipeline.id",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature if it has one, by its token otherwise. Raises: Rejected."""
    only_token = "x-buildkite-token" in delivery.headers and "x-buildkite-signature" not in delivery.headers
    (_token if only_token else scheme).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.event + $.job.id + $.job.state + $.job.finished_at",
        "$.event + $.job.id + $.job.state",
        "$.event + $.build.id + $.build.state + $.build.blocked + $.build.finished_at",
        "$.event + $.build.id + $.build.state + $.build.finished_at",
        "$.event + $.build.id + $.build.state",
        "signed period",
        known_from="https://buildkite.com/docs/apis/webhooks/pipelines",
    ),
    setup_url="https://buildkite.com/organizations/~/services",
)
