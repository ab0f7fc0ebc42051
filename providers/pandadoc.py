"""PandaDoc signs the body with HMAC-SHA256, in hex, in the URL's query: `?signature=…`; the key is the shared key.

A delivery is a list of events without ids: the kind, the document, its status and the time of its change are the event,
of a recipient who and when. What has neither is known by its fingerprint.

https://developers.pandadoc.com/docs/webhook-verification
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    data_digest,
    delivering,
    field,
    first,
    fixed,
    join,
    many_events,
    signer,
    told_apart_by,
)

scheme = Hmac(query="signature")
verify = scheme.verify
sign = signer(scheme.sign)
_kind, _document = field("$.event"), field("$.data.id")
_changed, _acted = field("$.data.date_modified"), field("$.data.action_date")
events = many_events(
    items="$",
    id=first(
        join(_kind, _document, field("$.data.action_by.id"), _acted),
        join(_kind, _document, field("$.data.status"), _changed),
        data_digest(),
    ),
    type=first(_kind, fixed("unknown")),
    account=field("$.data.created_by.email"),
    occurred_at=first(_acted, _changed),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "$[*].event + $[*].data.id + $[*].data.action_date",
        "$[*].event + $[*].data.id + $[*].data.status + $[*].data.date_modified",
        "body",
        because="what names no time of a change says all there is about the document",
    ),
    check_secret=scheme.check_secret,
    deliver=delivering(scheme.deliver, sign),
    setup_url="https://app.pandadoc.com/a/#/settings/integrations/webhook",
)
