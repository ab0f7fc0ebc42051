"""Help Scout signs the body with HMAC-SHA1, in base64.

The type is `X-HelpScout-Event`, which is not signed. There is no id: it is made of the event, what it is
about, and when that was changed; of a reply or a note also of how many there are, since a customer does not
change the time of the last user. After ten failures the webhook is switched off.

https://developer.helpscout.com/webhooks/
"""

from datetime import timedelta

from providers.kit import Hmac, digest, field, first, header, joined, one_event, signer
from providers.kit.fields import only_if

scheme = Hmac(header="x-helpscout-signature", hash="sha1", encoding="base64")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, type="x-helpscout-event", default_type="convo.created")
_event, _changed = header("x-helpscout-event"), first(field("$.updatedAt"), field("$.userUpdatedAt"))
events = one_event(
    id=first(
        only_if(
            _event,
            r".*\.(?:reply|note)\.created",
            joined(_event, field("$.id"), _changed, field("$.threads")),
        ),
        joined(_event, field("$.id"), _changed),
        digest(_event, field("$")),
    ),
    type=_event,
    account=field("$.mailboxId"),
    occurred_at=_changed,
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://secure.helpscout.net/apps/webhooks/"
