"""Docker Hub proves nothing: a secret at the end of the URL tells its deliveries from others.

There is no id: repository, tag and time of the push are the event. `callback_url` comes from whoever sent the
body, so do not call it. Nothing is known to be retried.

https://docs.docker.com/docker-hub/repos/manage/webhooks/
"""

from providers.kit import body_digest, digest, field, first, fixed, in_path, one_event

verify, sign, deliver, CHECK = in_path.verify, in_path.sign, in_path.deliver, in_path.check_secret
_push = (field("$.repository.repo_name"), field("$.push_data.tag"), field("$.push_data.pushed_at"))
events = one_event(
    id=first(digest(*_push), body_digest()),
    type=fixed("push"),
    account=field("$.repository.namespace"),
    occurred_at=field("$.push_data.pushed_at"),
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
UNAUTHENTICATED = True
SETUP = "https://hub.docker.com"
