"""Dropbox signs the body with HMAC-SHA256, in hex; the key is the app's secret.

A delivery only says which accounts have changes: each becomes an event, to be answered by asking the API with
a cursor. An app of a team gets the members that have changes, by team: that is one event. The same account's
next change looks exactly the same, so the minute of receipt is part of the id. The URL is asked by GET for
what it was given in `challenge`.

https://www.dropbox.com/developers/reference/webhooks
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    echo,
    field,
    fixed,
    join,
    json_body,
    json_paths,
    many_events,
    one_event,
    one_of_two,
    query_parameter,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-dropbox-signature")
verify = scheme.verify
sign = signer(scheme.sign)
_accounts = many_events(
    items="$.list_folder.accounts",
    id=join(fixed("list_folder"), field("$")),
    type=fixed("list_folder"),
    account=field("$"),
)
_whole = one_event(id=body_digest(), type=fixed("list_folder"))
events = one_of_two(
    _accounts,
    _whole,
    when=lambda delivery: (
        not isinstance(json_paths.find(json_body(delivery), ("list_folder", "accounts")), list)
    ),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send a challenge back as it came; None for anything else."""
    return echo(query_parameter(delivery, "challenge"))


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    disables_after="deliveries that mostly fail",
    identity=told_apart_by("receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://www.dropbox.com/developers/apps",
)
