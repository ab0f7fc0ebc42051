"""Help Scout signs the body with HMAC-SHA1, in base64.

The type is `X-HelpScout-Event`, which is not signed. There is no id: it is made of the event, what it is
about, and when that was changed; of a reply or a note also of how many there are, since a customer does not
change the time of the last user; of tags, assignments and states of all that is told. What tells no time is known by
its content and the minute of receipt. After ten failures the webhook is switched off.

https://developer.helpscout.com/webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    data_digest,
    digest,
    field,
    first,
    header,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(header="x-helpscout-signature", hash="sha1", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign, type="x-helpscout-event", default_type="convo.created")
_event = header("x-helpscout-event")
_changed = first(field("$.updatedAt"), field("$.userUpdatedAt"))
_known = join(_event, field("$.id"), _changed)
events = one_event(
    id=first(
        when_matches(
            _event,
            r".*\.(?:reply|note)\.created",
            join(_event, field("$.id"), _changed, field("$.threads")),
        ),
        when_matches(
            _event, r".*\.(?:assigned|moved|status|tags|custom-fields|updated)", join(_known, data_digest())
        ),
        _known,
    ),
    undated=digest(_event, field("$")),
    former=(when_matches(_event, r".*\.(?:assigned|moved|status|tags|custom-fields|updated)", _known),),
    type=_event,
    account=field("$.mailboxId"),
    occurred_at=_changed,
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=3),
    disables_after="ten failures",
    identity=told_apart_by(
        "header x-helpscout-event + $.id + $.userUpdatedAt + $.threads",
        "header x-helpscout-event + $.id + $.userUpdatedAt",
        "header x-helpscout-event + $.id + $.updatedAt",
        "receipt",
    ),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://secure.helpscout.net/apps/webhooks/",
)
