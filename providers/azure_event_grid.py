"""Azure Event Grid signs nothing; it brings a secret in the query of its URL, or in a header that is set up.

The secret is in `?code=`; option `in` of the provider `token` names another place: "header:X-Secret" (a delivery
property of the subscription), or "path". A delivery is a list of events in Event Grid's own schema; a subscription
with the CloudEvents schema is for the provider `cloudevents`. Ids are unique within a topic, and the same on each
attempt, for a day. A new URL gets a SubscriptionValidationEvent, whose code goes back if the secret came along;
`validationUrl`, which anybody could write, is not fetched.

https://learn.microsoft.com/en-us/azure/event-grid/end-point-validation-event-grid-events-schema
"""

from collections.abc import Callable, Sequence
from typing import Final

from hookonce.providers import Delivery, Rejected, Reply, kit

_MAX_PROBE_BYTES: Final = 64 * 1024
_VALIDATION: Final = "Microsoft.EventGrid.SubscriptionValidationEvent"
events = kit.many_events(
    items="$",
    id=kit.first(kit.scoped("$.topic", "$.id"), "$.id", kit.data_digest()),
    type=kit.or_unknown("$.eventType"),
    account="$.topic",
    occurred_at="$.eventTime",
)


def _handshake(scheme: kit.Token) -> Callable[[Delivery, Sequence[str]], Reply | None]:
    def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Send the code of a validation event back; None for anything else, one without the secret included."""
        if delivery.headers.get("aeg-event-type") != "SubscriptionValidation":
            return None
        try:
            scheme.authentic(delivery, secrets)
            probe = kit.json_body(delivery) if len(delivery.body) <= _MAX_PROBE_BYTES else None
        except Rejected:
            return None
        code = kit.json_paths.find(probe, (0, "data", "validationCode"))
        is_probe = kit.json_paths.find(probe, (0, "eventType")) == _VALIDATION and isinstance(code, str)
        return kit.json_reply({"validationResponse": code}) if is_probe else None

    return handshake


@kit.with_options("azure_event_grid")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    scheme = kit.declared_options.token_scheme(given, "query:code")
    return kit.by_token(
        scheme,
        events=events,
        sender=kit.Sender(
            id_is_signed=False,
            retry_horizon=kit.days(1),
            disables_after="many failures: all deliveries are delayed",
            identity=kit.told_apart_by("$[*].topic + $[*].id", "$[*].id"),
            handshake=_handshake(scheme),
            setup_url="https://portal.azure.com/#browse/Microsoft.EventGrid%2FeventSubscriptions",
        ),
    )
