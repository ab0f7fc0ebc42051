"""Dropbox signs the body with HMAC-SHA256, in hex; the key is the app's secret.

A delivery only says which accounts have changes: each becomes an event, to be answered by asking the API with
a cursor. An app of a team gets the members that have changes, by team: that is one event. The same account's
next change looks exactly the same, so the minute of receipt is part of the id. The URL is asked by GET for
what it was given in `challenge`.

https://www.dropbox.com/developers/reference/webhooks
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

_accounts = kit.many_events(
    items="$.list_folder.accounts",
    id=kit.join(kit.fixed("list_folder"), "$"),
    type=kit.fixed("list_folder"),
    account="$",
)
_whole = kit.one_event(id=kit.body_digest(), type=kit.fixed("list_folder"))
events = kit.one_of_two(
    _accounts,
    _whole,
    when=lambda delivery: (
        not isinstance(kit.json_paths.find(kit.json_body(delivery), ("list_folder", "accounts")), list)
    ),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send a challenge back as it came; None for anything else."""
    return kit.echo(kit.query_parameter(delivery, "challenge"))


sender = kit.Sender(
    scheme=kit.Hmac(header="x-dropbox-signature"),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    disables_after="deliveries that mostly fail",
    identity=kit.told_apart_by("receipt"),
    id_period=kit.minutes(1),
    setup_url="https://www.dropbox.com/developers/apps",
)
