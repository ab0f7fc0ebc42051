"""Telegram brings the `secret_token` that was given to setWebhook, and signs nothing.

The id is `$.update_id`, which counts the updates of one bot: a source of its own for each bot. The type is
the name of the update's other part (`message`, `callback_query`). Telegram keeps updates for a day and tries
for as long.

https://core.telegram.org/bots/api#setwebhook
"""

import re
from datetime import timedelta

from providers.kit import Pick, Token, View, field, one_event, signer

scheme = Token(header="x-telegram-bot-api-secret-token")
verify, sign = scheme.verify, signer(scheme.sign)
_FORM = re.compile(r"[A-Za-z0-9_-]{1,256}")


def _part(view: View) -> object:
    """The name of what was updated."""
    names = view.data if isinstance(view.data, dict) else {}
    return next((name for name in names if name != "update_id"), None)


def _date(view: View) -> object:
    part = view.data.get(_part(view)) if isinstance(view.data, dict) else None
    return part.get("date") if isinstance(part, dict) else None


events = one_event(
    id=field("$.update_id"),
    type=Pick(_part, "the update's part", plant=lambda data, kind: {**data, kind: {}}),
    occurred_at=Pick(_date, "the date of the update's part"),
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://core.telegram.org/bots/api#setwebhook"


def CHECK(secret: str) -> None:  # noqa: N802  a declaration of the module
    """Raises: ValueError for what Telegram does not take."""
    if _FORM.fullmatch(secret) is None:
        raise ValueError(
            "the secret is not usable; expected 1 to 256 of A-Z a-z 0-9 _ -, and not the bot's token"
        )
