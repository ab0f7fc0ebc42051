"""Telegram brings the `secret_token` that was given to setWebhook, and signs nothing.

The id is `$.update_id`, which counts the updates of one bot: a source of its own for each bot. The type is
the name of the update's other part (`message`, `callback_query`). Telegram keeps updates for a day and tries
for as long.

https://core.telegram.org/bots/api#setwebhook
"""

import re

from hookonce.providers import kit

_FORM = re.compile(r"[A-Za-z0-9_-]{1,256}")


def _part(view: kit.EventView) -> object:
    """The name of what was updated."""
    names = view.data if isinstance(view.data, dict) else {}
    return next((name for name in names if name != "update_id"), None)


def _date(view: kit.EventView) -> object:
    part = view.data.get(_part(view)) if isinstance(view.data, dict) else None
    return part.get("date") if isinstance(part, dict) else None


events = kit.one_event(
    id="$.update_id",
    type=kit.Extractor(_part, "the update's part", put=lambda data, kind: {**data, kind: {}}),
    occurred_at=kit.Extractor(_date, "the date of the update's part"),
)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what Telegram does not take."""
    if _FORM.fullmatch(secret) is None:
        raise ValueError(
            "the secret is not usable; expected 1 to 256 of A-Z a-z 0-9 _ -, and not the bot's token"
        )


sender = kit.Sender(
    scheme=kit.Token(header="x-telegram-bot-api-secret-token"),
    id_is_signed=False,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.update_id"),
    setup_url="https://core.telegram.org/bots/api#setwebhook",
)
