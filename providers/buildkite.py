"""Buildkite signs `<timestamp>.<body>` with HMAC-SHA256, in hex, or sends the token itself: as the webhook is set.

The key of the signature is that same token. A token says nothing about the body, so this module counts as
unsigned as a whole; choose the signature. There is no id: it is made of the event, the build or job, its
state and its times; a build that blocks or whose job is retried finishes again. What else the body tells may be later
than the event. Of agents and pings the body is the event, with when it was signed, a minute more or less.

https://buildkite.com/docs/apis/webhooks/pipelines
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Attempts,
    Extractor,
    Hmac,
    Sender,
    Timestamp,
    Token,
    body_digest,
    digest,
    field,
    first,
    fixed,
    header,
    join,
    one_event,
    signer,
    told_apart_by,
)

_token = Token(header="x-buildkite-token")
scheme = Hmac(
    header="x-buildkite-signature",
    key="signature",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="timestamp"),
)
sign = signer(scheme.sign, type="x-buildkite-event")
_event = field("$.event")
_job = join(_event, field("$.job.id"), field("$.job.state"))
_build = join(_event, field("$.build.id"), field("$.build.state"))
_MOMENTS = (
    "blocked",
    "blocked_state",
    "started_at",
    "finished_at",
    "canceled_at",
    "retries_count",
    "unblocked_at",
)


def _state_of(thing: str, known: Extractor) -> Extractor:
    """`known`, with all that tells one time that a thing got into a state from another; None where nothing does."""
    return join(known, digest(*(field(f"$.{thing}.{name}") for name in _MOMENTS)))


events = one_event(
    id=first(
        _state_of("job", _job),
        _job,
        _state_of("build", _build),
        _build,
    ),
    undated=body_digest(),
    attempts=Attempts(scheme.signed_at, within=timedelta(minutes=1)),
    former=(_job, _build, body_digest()),
    type=first(field("$.event"), header("x-buildkite-event"), fixed("unknown")),
    account=field("$.pipeline.id"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature if it has one, by its token otherwise. Raises: Rejected."""
    only_token = "x-buildkite-token" in delivery.headers and "x-buildkite-signature" not in delivery.headers
    (_token if only_token else scheme).verify(delivery, secrets, now)


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by(
        "$.event + $.job.id + $.job.state + $.job.finished_at",
        "$.event + $.job.id + $.job.state",
        "$.event + $.build.id + $.build.state + $.build.blocked + $.build.finished_at",
        "$.event + $.build.id + $.build.state + $.build.finished_at",
        "$.event + $.build.id + $.build.state",
        "signed period",
        known_from="https://buildkite.com/docs/apis/webhooks/pipelines",
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://buildkite.com/organizations/~/services",
)
