"""Dropbox signs the body with HMAC-SHA256, in hex; the key is the app's secret.

A delivery only says which accounts have changes: each becomes an event, to be answered by asking the API with
a cursor. An app of a team gets the members that have changes, by team: that is one event. The same account's
next change looks exactly the same, so the minute of receipt is part of the id. The URL is asked by GET for
what it was given in `challenge`.

https://www.dropbox.com/developers/reference/webhooks
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Reply
from providers.kit import (
    Hmac,
    body_digest,
    either,
    field,
    fixed,
    joined,
    json_body,
    many_events,
    one_event,
    paths,
    signer,
)
from providers.kit.probing import asked, echo

scheme = Hmac(header="x-dropbox-signature")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_accounts = many_events(
    items="$.list_folder.accounts",
    id=joined(fixed("list_folder"), field("$")),
    type=fixed("list_folder"),
    account=field("$"),
)
_whole = one_event(id=body_digest(), type=fixed("list_folder"))
events = either(
    _accounts,
    _whole,
    when=lambda delivery: not isinstance(paths.find(json_body(delivery), ("list_folder", "accounts")), list),
)
ID_PERIOD = timedelta(minutes=1)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://www.dropbox.com/developers/apps"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send a challenge back as it came; None for anything else."""
    return echo(asked(delivery, "challenge"))
