"""Help Scout signs the body with HMAC-SHA1, in base64.

The type is `X-HelpScout-Event`, which is not signed. There is no id: it is made of the event, what it is about, and
when that was changed; for a reply or a note also of how many there are, since what a customer writes leaves that time
as it is; for tags, assignments and states also of the whole body. What has no time is known by its content and the
minute of receipt. After ten failures the webhook is switched off.

https://developer.helpscout.com/webhooks/
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-helpscout-signature", hash="sha1", encoding="base64")
sign = kit.signer(scheme.sign, type="x-helpscout-event", default_type="convo.created")
_event = kit.header("x-helpscout-event")
_changed = kit.first("$.updatedAt", "$.userUpdatedAt")
_known = kit.join(_event, "$.id", _changed)
events = kit.one_event(
    id=kit.first(
        kit.when_matches(
            _event, r".*\.(?:reply|note)\.created", kit.join(_event, "$.id", _changed, "$.threads")
        ),
        kit.when_matches(
            _event,
            r".*\.(?:assigned|moved|status|tags|custom-fields|updated)",
            kit.join(_known, kit.data_digest()),
        ),
        _known,
    ),
    undated=kit.digest(_event, "$"),
    type=_event,
    account="$.mailboxId",
    occurred_at=_changed,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="what tells no time (a tag, an assignment) may lead back to what it was",
    retry_horizon=kit.days(3),
    disables_after="ten failures",
    identity=kit.told_apart_by(
        "header x-helpscout-event + $.id + $.userUpdatedAt + $.threads",
        "header x-helpscout-event + $.id + $.userUpdatedAt",
        "header x-helpscout-event + $.id + $.updatedAt",
        "receipt",
    ),
    id_period=kit.minutes(1),
    setup_url="https://secure.helpscout.net/apps/webhooks/",
)
