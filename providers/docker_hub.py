"""Docker Hub proves nothing: a secret at the end of the URL tells its deliveries from others.

There is no id: repository, tag and time of the push are the event. `callback_url` comes from whoever sent the
body, so do not call it. Nothing is known to be retried.

https://docs.docker.com/docker-hub/repos/manage/webhooks/
"""

from hookonce.providers import kit

_push = (
    kit.field("$.repository.repo_name"),
    kit.field("$.push_data.tag"),
    kit.field("$.push_data.pushed_at"),
)
events = kit.one_event(
    id=kit.or_body(kit.digest(*_push)),
    type=kit.fixed("push"),
    account="$.repository.namespace",
    occurred_at="$.push_data.pushed_at",
)
sender = kit.Sender(
    scheme=kit.Token(path=True),
    id_is_signed=False,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.repository.repo_name + $.push_data.tag + $.push_data.pushed_at"),
    setup_url="https://hub.docker.com",
)
