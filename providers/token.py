"""Any sender that signs nothing and brings a shared secret, described on the source: it needs no code.

    token = { in = "header:X-Token", id = "$.id", type = "$.event" }
    token = { in = "bearer", id = "header:X-Delivery", type = "header:X-Topic", account = "$.shop" }
    token = { in = "$.verification_token", id = "fingerprint", type = "fixed:form", challenge = "$.challenge" }

in (required) is where the secret comes: "header:Name" (behind prefix, if that is given), "bearer", "basic" (the secret
is user:password), "query:name", "path" (`/hooks/<source>/<secret>`, for senders where only a URL can be set), or
"$.path", a field of a JSON body or a form, which is kept with the event. id and type (required), account and
occurred_at are places: "$.path", "header:Name", "query:name", and of all but the id "fixed:text"; id may also be
"fingerprint", of the body without the token and the paths in volatile. Of a form "$.name" is a field; a body that is
neither JSON nor a form is a text without places. Where different events may have equal bytes and no id, period says for
how many seconds what looks alike is the same event. Of a batch items is the place of the list, "$" or "$.events": each
element is an event, and the places, the fingerprint and the paths in volatile are an element's. methods, ["POST"] by
default, lists by which of POST, PUT and PATCH the sender delivers.

challenge is for senders that ask whether there is anybody: "query:name" is sent back as text, "header:Name" as the same
header, "$.path" as JSON with the same path. A body is such a question if it has a text there and no id (with a
fingerprint: and nothing else). Anybody but a caller with a wrong secret gets that answer; it says nothing that was not
asked. With "head" a HEAD request is answered 200, with "get" one by GET or HEAD, for senders that take any success.

Nothing but the secret is proven: whoever has seen one delivery can send others. What can sign, should.

https://datatracker.ietf.org/doc/html/rfc7617
"""

from collections.abc import Mapping
from typing import Any

from hookonce.providers import kit

declared = kit.declared_options


def configure(options: Mapping[str, Any]) -> kit.Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = kit.Options(options, "token")
    scheme = declared.token_scheme(given)
    left_out = declared.volatile(given, "volatile")
    changing = (*left_out, scheme.field) if scheme.field else left_out
    # Of what was read, so that a form loses its token too.
    id_at = declared.id_place(given, "id", kit.data_digest(*changing))
    items, delivered_by = given.text("items", ""), declared.methods(given)
    places: dict[str, Any] = {
        "id": id_at,
        "type": declared.place(given, "type"),
        "account": declared.place_or_none(given, "account"),
        "occurred_at": declared.place_or_none(given, "occurred_at"),
    }
    handshake = kit.challenge(
        given, "challenge", None if options.get("id") == "fingerprint" else id_at, scheme
    )
    within = declared.period(given, "period")
    declared.expect_ids_that_differ(given, "id", within, _proof(options))
    given.done()
    return kit.by_token(
        scheme,
        events=kit.many_events(items=items, **places)
        if items
        else kit.one_event(read=kit.any_body, **places),
        sender=kit.Sender(
            id_is_signed=False,
            retry_horizon="whoever sends decides",
            identity=declared.identity(given, "id", within, items),
            id_period=within,
            volatile=changing,
            handshake=handshake,
            methods=delivered_by,
        ),
        wrap=lambda sign: declared.signer_of(sign, given),
    )


def _proof(options: Mapping[str, Any]) -> str:
    """Return where the secret comes, as a place."""
    where = str(options.get("in", ""))
    return "header:Authorization" if where in {"basic", "bearer"} else where
