"""Mailchimp's audience webhooks prove nothing: a secret at the end of the URL tells them from others.

The body is a form with names such as `data[email]`. There is no id, and the time is in seconds: all fields
together are the id, since two changes of one subscriber may come at once. The URL is probed by a GET when it is
saved, which is answered 200 to anyone. Mailchimp tries for an hour and a quarter.

https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Sender,
    data_digest,
    field,
    first,
    fixed,
    form_body,
    one_event,
    path_secret,
    told_apart_by,
)

verify = path_secret.verify
sign = path_secret.sign
events = one_event(
    id=data_digest(),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$['data[list_id]']"),
    occurred_at=field("$.fired_at"),
    read=form_body,
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Answer a GET; None for anything else."""
    return Reply() if delivery.method == "GET" else None


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(hours=2),
    identity=told_apart_by("$.fired_at"),
    unauthenticated=True,
    check_secret=path_secret.check_secret,
    handshake=handshake,
    deliver=path_secret.deliver,
    setup_url="https://admin.mailchimp.com/lists/",
)
