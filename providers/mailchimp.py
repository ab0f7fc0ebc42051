"""Mailchimp's audience webhooks prove nothing: a secret at the end of the URL tells them from others.

The body is a form with names such as `data[email]`. There is no id, and the time is in seconds: all fields
together are the id, since two changes of one subscriber may come at once. The URL is probed by a GET when it is
saved, which is answered 200 to anyone. Mailchimp tries for an hour and a quarter.

https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Reply
from providers.kit import data_digest, field, first, fixed, form_body, in_path, one_event

verify, sign, deliver, CHECK = in_path.verify, in_path.sign, in_path.deliver, in_path.check_secret
events = one_event(
    id=data_digest(),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$['data[list_id]']"),
    occurred_at=field("$.fired_at"),
    read=form_body,
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
UNAUTHENTICATED = True
RETRY_HORIZON = timedelta(hours=2)
SETUP = "https://admin.mailchimp.com/lists/"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Answer a GET; None for anything else."""
    return Reply() if delivery.method == "GET" else None
