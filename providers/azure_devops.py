"""Azure DevOps signs nothing; its service hooks bring the user name and password, or the header, of their set-up.

The secret is `user:password` (HTTP Basic); option `in` names a header of one's own instead. The id is `$.id`, that of
the event: `notificationId` counts the deliveries of one subscription. A trial of the set-up page has the same id each
time. Failed deliveries are tried again up to eight times; a subscription that goes on failing is put on probation.

https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.first("$.id", kit.body_digest("$.notificationId")),
    type=kit.or_unknown("$.eventType"),
    account="$.resourceContainers.account.id",
    occurred_at="$.createdDate",
)
configure = kit.token_sender(
    "azure_devops",
    "basic",
    events=events,
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon=kit.days(1),
        identity=kit.told_apart_by("$.id"),
        setup_url="https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks",
    ),
)
