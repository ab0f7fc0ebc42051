"""Google Chat sends a token (RS256) in `Authorization`, which says who sends, and nothing about the body.

The secret is chat@system.gserviceaccount.com, the account for which Google sends to every Chat app; what tells ours
from others' is the audience, as the app is set up: our URL, with the option `audience` left out, or the project's
number as that option. Keys are Google's, and fetched. There is no id: the kind, the time (in µs), who and where are
the event. Chat takes what is answered for a message, so it gets an empty one; answers and cards go by the API. Both
forms of events are read, Chat's own and that of Workspace add-ons.

https://developers.google.com/workspace/chat/verify-requests-from-chat
"""

from typing import Final

from hookonce.providers import kit

_BY_NUMBER: Final = "https://www.googleapis.com/service_accounts/v1/jwk/chat@system.gserviceaccount.com"
_BY_URL: Final = "https://www.googleapis.com/oauth2/v3/certs"
_FETCHES: Final = (
    r"https://www\.googleapis\.com/service_accounts/v1/jwk/chat@system\.gserviceaccount\.com",
    r"https://www\.googleapis\.com/oauth2/v3/certs",
)
_user = kit.first("$.user.name", "$.chat.user.name", kit.fixed("-"))
_at = kit.first("$.eventTime", "$.chat.eventTime")
_kind = kit.or_unknown("$.type", "$.chat.type")
_space = kit.first(
    "$.space.name",
    *(
        kit.field(f"$.chat.{kind}Payload.space.name")
        for kind in ("message", "addedToSpace", "appCommand", "buttonClicked")
    ),
    kit.fixed("-"),
)
events = kit.one_event(
    id=kit.or_body(kit.join(_kind, _at, _user, _space, kit.first("$.message.name", kit.fixed("-")))),
    type=_kind,
    account=_space,
    occurred_at=_at,
)


@kit.with_options("google_chat")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    audience = given.text("audience", "")
    is_number = audience.isdigit()
    scheme = kit.Oidc(
        url=_BY_NUMBER if is_number else _BY_URL,
        patterns=_FETCHES,
        issuers=() if is_number else ("https://accounts.google.com", "accounts.google.com"),
        audience=audience,
        is_issuer=is_number,
    )
    return kit.Configured(
        sign=scheme.sign,
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=False,
            body_is_unsigned=True,
            signs_url=not audience,
            retry_horizon="unknown (no vendor documentation found)",
            identity=kit.told_apart_by(
                "$.eventTime",
                "$.chat.eventTime",
                "body",
                because="what names no time is a trial, and one is as good as another",
            ),
            accepted=kit.json_reply({}),
            fetches=_FETCHES,
            setup_url="https://console.cloud.google.com/apis/api/chat.googleapis.com/hangouts-chat",
        ),
    )
