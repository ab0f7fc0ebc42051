"""Airtable signs the body with HMAC-SHA256, in hex behind `hmac-sha256=`; the key is base64 (`macSecretBase64`).

A delivery only says that a base has changed: fetch the payloads from the API and keep your cursor. It has no
id, so that is the webhook's id and the time. A webhook ends seven days after it was made unless refreshed.

https://airtable.com/developers/web/api/webhooks-overview
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body(kit.join("$.webhook.id", "$.timestamp")),
    type=kit.fixed("ping"),
    account="$.base.id",
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-airtable-content-mac", prefix="hmac-sha256=", secret="base64"),
    id_is_signed=True,
    retry_horizon=kit.days(7),
    disables_after="a week of failures",
    identity=kit.told_apart_by("$.webhook.id + $.timestamp"),
    setup_url="https://airtable.com/developers/web/api/create-a-webhook",
)
