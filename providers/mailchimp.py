"""Mailchimp's audience webhooks prove nothing: a secret at the end of the URL tells them from others.

The body is a form with names such as `data[email]`. There is no id, and the time is in seconds: all fields
together are the id, since two changes of one subscriber may come at once. The URL is probed by a GET when it is
saved, which is answered 200 to anyone. Mailchimp tries for an hour and a quarter.

https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

events = kit.one_event(
    id=kit.data_digest(),
    type=kit.or_unknown("$.type"),
    account="$['data[list_id]']",
    occurred_at="$.fired_at",
    read=kit.form_body,
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Answer a GET; None for anything else."""
    return Reply() if delivery.method == "GET" else None


sender = kit.Sender(
    scheme=kit.Token(path=True),
    id_is_signed=False,
    retry_horizon=kit.hours(2),
    identity=kit.told_apart_by("$.fired_at"),
    setup_url="https://admin.mailchimp.com/lists/",
)
