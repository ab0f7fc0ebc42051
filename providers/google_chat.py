"""Google Chat sends a token (RS256) in `Authorization`, which says who sends, and nothing about the body.

The secret is chat@system.gserviceaccount.com, the account for which Google sends to every Chat app; what tells ours
from others' is the audience, as the app is set up: our URL, with the option `audience` left out, or the project's
number as that option. Keys are Google's, and fetched. There is no id: the kind, the time (in µs), who and where are
the event. Chat takes what is answered for a message, so it gets an empty one; answers and cards go by the API. Both
forms of events are read, Chat's own and that of Workspace add-ons.

https://developers.google.com/workspace/chat/verify-requests-from-chat
"""

from collections.abc import Mapping
from typing import Any, Final

from hookonce.providers.kit import (
    Configured,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    json_reply,
    one_event,
    told_apart_by,
)
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.schemes.google_oidc import Oidc

_BY_NUMBER: Final = "https://www.googleapis.com/service_accounts/v1/jwk/chat@system.gserviceaccount.com"
_BY_URL: Final = "https://www.googleapis.com/oauth2/v3/certs"
_FETCHES: Final = (
    r"https://www\.googleapis\.com/service_accounts/v1/jwk/chat@system\.gserviceaccount\.com",
    r"https://www\.googleapis\.com/oauth2/v3/certs",
)
_user = first(field("$.user.name"), field("$.chat.user.name"), fixed("-"))
_at = first(field("$.eventTime"), field("$.chat.eventTime"))
_kind = first(field("$.type"), field("$.chat.type"), fixed("unknown"))
_space = first(
    field("$.space.name"),
    *(
        field(f"$.chat.{kind}Payload.space.name")
        for kind in ("message", "addedToSpace", "appCommand", "buttonClicked")
    ),
    fixed("-"),
)
events = one_event(
    id=first(join(_kind, _at, _user, _space, first(field("$.message.name"), fixed("-"))), body_digest()),
    type=_kind,
    account=_space,
    occurred_at=_at,
)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "google_chat")
    audience = given.text("audience", "")
    given.done()
    is_number = audience.isdigit()
    scheme = Oidc(
        url=_BY_NUMBER if is_number else _BY_URL,
        patterns=_FETCHES,
        issuers=() if is_number else ("https://accounts.google.com", "accounts.google.com"),
        audience=audience,
        is_issuer=is_number,
    )
    return Configured(
        verify=scheme.verify,
        sign=scheme.sign,
        events=events,
        sender=Sender(
            id_is_signed=False,
            body_is_unsigned=True,
            signs_url=not audience,
            retry_horizon=None,
            horizon_unknown="not known: no statement of its own is at hand",
            identity=told_apart_by(
                "$.eventTime",
                "$.chat.eventTime",
                "body",
                because="what names no time is a trial, and one is as good as another",
            ),
            tolerance=scheme.tolerance,
            accepted=json_reply({}),
            fetches=_FETCHES,
            check_secret=scheme.check_secret,
            setup_url="https://console.cloud.google.com/apis/api/chat.googleapis.com/hangouts-chat",
        ),
    )
