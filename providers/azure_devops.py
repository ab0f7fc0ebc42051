"""Azure DevOps signs nothing; its service hooks bring the user name and password, or the header, of their set-up.

The secret is `user:password` (HTTP Basic); option `in` names a header of one's own instead. The id is `$.id`, that of
the event: `notificationId` counts the deliveries of one subscription. A trial of the set-up page has the same id each
time. Failed deliveries are tried again up to eight times; a subscription that goes on failing is put on probation.

https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, body_digest, field, first, fixed, one_event, told_apart_by
from hookonce.providers.kit.registry.token_sender import token_sender

events = one_event(
    id=first(field("$.id"), body_digest("$.notificationId")),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.resourceContainers.account.id"),
    occurred_at=field("$.createdDate"),
)
configure = token_sender(
    "azure_devops",
    "basic",
    events=events,
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=timedelta(days=1),
        identity=told_apart_by("$.id"),
        setup_url="https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks",
    ),
)
