"""Azure Event Grid signs nothing; it brings a secret in the query of its URL, or in a header that is set up.

The secret is in `?code=`; option `in` of the provider `token` names another place: "header:X-Secret" (a delivery
property of the subscription), or "path". A delivery is a list of events in Event Grid's own schema; a subscription
with the CloudEvents schema is for the provider `cloudevents`. Ids are unique within a topic, and the same on each
attempt, for a day. A new URL gets a SubscriptionValidationEvent, whose code goes back if the secret came along;
`validationUrl`, which anybody could write, is not fetched.

https://learn.microsoft.com/en-us/azure/event-grid/end-point-validation-event-grid-events-schema
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from hookonce.providers import Delivery, Rejected, Reply
from hookonce.providers.kit import (
    Configured,
    Sender,
    Token,
    data_digest,
    field,
    first,
    fixed,
    join,
    json_body,
    json_paths,
    json_reply,
    many_events,
    scoped,
    told_apart_by,
)
from hookonce.providers.kit.registry.declared_options import token_scheme
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.registry.token_sender import by_token

_MAX_PROBE_BYTES: Final = 64 * 1024
_VALIDATION: Final = "Microsoft.EventGrid.SubscriptionValidationEvent"
events = many_events(
    items="$",
    id=first(scoped(field("$.topic"), field("$.id")), field("$.id"), data_digest()),
    former=(join(field("$.topic"), field("$.id")),),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.topic"),
    occurred_at=field("$.eventTime"),
)


def _handshake(scheme: Token) -> Callable[[Delivery, Sequence[str]], Reply | None]:
    def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Send the code of a validation event back; None for anything else, one without the secret included."""
        if delivery.headers.get("aeg-event-type") != "SubscriptionValidation":
            return None
        try:
            scheme.authentic(delivery, secrets)
            probe = json_body(delivery) if len(delivery.body) <= _MAX_PROBE_BYTES else None
        except Rejected:
            return None
        said = json_paths.find(probe, (0, "eventType")), json_paths.find(probe, (0, "data", "validationCode"))
        is_probe = said[0] == _VALIDATION and isinstance(said[1], str)
        return json_reply({"validationResponse": said[1]}) if is_probe else None

    return handshake


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "azure_event_grid")
    scheme = token_scheme(given, "query:code")
    given.done()
    return by_token(
        scheme,
        events=events,
        sender=Sender(
            id_is_signed=False,
            body_is_unsigned=True,
            retry_horizon=timedelta(days=1),
            disables_after="many failures: all deliveries are delayed",
            identity=told_apart_by("$[*].topic + $[*].id", "$[*].id"),
            handshake=_handshake(scheme),
            setup_url="https://portal.azure.com/#browse/Microsoft.EventGrid%2FeventSubscriptions",
        ),
    )
