"""Figma brings the `passcode` that a webhook was made with, in every body, and signs nothing.

The passcode is kept with the event, and a new one makes no event new. There is no id: all that the body says
besides is the event, its time in seconds included, but for `retries`, which counts its attempts. Figma tries three
more times, within four hours; an answer of 400 would switch the webhook off.

https://developers.figma.com/docs/rest-api/webhooks/
"""

from hookonce.providers import kit

_COUNTED = ("$.retries",)
scheme = kit.Token(field="$.passcode")
events = kit.one_event(
    id=kit.data_digest("$.passcode", *_COUNTED),
    type=kit.or_unknown("$.event_type"),
    account="$.webhook_id",
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    retry_horizon=kit.hours(5),
    identity=kit.told_apart_by("$.webhook_id + $.event_type + $.timestamp", new_on_retry=_COUNTED),
    volatile=_COUNTED,
    setup_url="https://developers.figma.com/docs/rest-api/webhooks/",
)
