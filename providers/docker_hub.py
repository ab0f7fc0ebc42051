"""Docker Hub proves nothing: a secret at the end of the URL tells its deliveries from others.

There is no id: repository, tag and time of the push are the event. `callback_url` comes from whoever sent the
body, so do not call it. Nothing is known to be retried.

https://docs.docker.com/docker-hub/repos/manage/webhooks/
"""

from hookonce.providers.kit import (
    Sender,
    body_digest,
    digest,
    field,
    first,
    fixed,
    one_event,
    path_secret,
    told_apart_by,
)

verify = path_secret.verify
sign = path_secret.sign
_push = (field("$.repository.repo_name"), field("$.push_data.tag"), field("$.push_data.pushed_at"))
events = one_event(
    id=first(digest(*_push), body_digest()),
    type=fixed("push"),
    account=field("$.repository.namespace"),
    occurred_at=field("$.push_data.pushed_at"),
)

sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.repository.repo_name + $.push_data.tag + $.push_data.pushed_at"),
    unauthenticated=True,
    check_secret=path_secret.check_secret,
    deliver=path_secret.deliver,
    setup_url="https://hub.docker.com",
)
