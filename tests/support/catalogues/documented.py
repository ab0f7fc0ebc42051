"""Senders of whose events no package tells: their kinds and the envelope, as their pages describe them.

Each entry is the page, the shape of a body, and the kinds. `{kind}` in the shape is where a kind's name stands;
`{object}` what stands before its last dot. These are facts of the pages, written down by hand, and marked
`documented` in the catalogue.
"""

from dataclasses import dataclass
from typing import Any

S, N, B = "string", "number", "boolean"


@dataclass(frozen=True)
class Documented:
    """A sender's page, the shape of a body, and its kinds."""

    page: str
    body: Any
    kinds: tuple[str, ...]


def _of(objects: str, *done: str, by: str = ".") -> tuple[str, ...]:
    """Return the kinds of each object and each thing that is done to it."""
    return tuple(f"{each}{by}{what}" for each in objects.split() for what in done)


DOCUMENTED = {
    "adyen": Documented(
        "https://docs.adyen.com/development-resources/webhooks/webhook-types",
        {
            "live": "=false",
            "notificationItems": [
                {
                    "NotificationRequestItem": {
                        "amount": {"currency": S, "value": N},
                        "eventCode": "={kind}",
                        "eventDate": S,
                        "merchantAccountCode": S,
                        "merchantReference": S,
                        "pspReference": S,
                        "reason": S,
                        "success": "=true",
                    }
                }
            ],
        },
        (
            "AUTHORISATION",
            "CANCELLATION",
            "CANCEL_OR_REFUND",
            "CAPTURE",
            "CAPTURE_FAILED",
            "REFUND",
            "REFUND_FAILED",
            "REFUNDED_REVERSED",
            "CHARGEBACK",
            "CHARGEBACK_REVERSED",
            "NOTIFICATION_OF_CHARGEBACK",
            "NOTIFICATION_OF_FRAUD",
            "REQUEST_FOR_INFORMATION",
            "SECOND_CHARGEBACK",
            "PREARBITRATION_LOST",
            "PREARBITRATION_WON",
            "ORDER_OPENED",
            "ORDER_CLOSED",
            "OFFER_CLOSED",
            "REPORT_AVAILABLE",
            "RECURRING_CONTRACT",
            "TECHNICAL_CANCEL",
            "VOID_PENDING_REFUND",
            "PAYOUT_THIRDPARTY",
            "PAIDOUT_REVERSED",
            "PAYOUT_DECLINE",
            "PAYOUT_EXPIRE",
            "AUTHORISATION_ADJUSTMENT",
            "POSTPONED_REFUND",
        ),
    ),
    "auth0": Documented(
        "https://auth0.com/docs/deploy-monitor/logs/log-event-type-codes",
        {
            "log_id": S,
            "data": {
                "date": S,
                "type": "={kind}",
                "description": S,
                "connection_id": S,
                "client_id": S,
                "client_name": S,
                "ip": S,
                "user_agent": S,
                "user_id": S,
                "user_name": S,
                "log_id": S,
            },
        },
        (
            "s",
            "ss",
            "f",
            "fp",
            "fu",
            "fs",
            "fcoa",
            "scoa",
            "feccft",
            "seccft",
            "fepft",
            "sepft",
            "fertft",
            "sertft",
            "slo",
            "flo",
            "limit_wc",
            "limit_mu",
            "limit_sul",
            "pwd_leak",
            "cs",
            "cls",
            "sv",
            "fv",
            "scp",
            "fcp",
            "scpr",
            "fcpr",
            "sce",
            "fce",
            "scu",
            "fcu",
            "sapi",
            "fapi",
            "gd_enrollment_complete",
            "gd_send_sms",
            "du",
            "fdu",
            "sui",
            "sdu",
            "w",
            "depnote",
            "mfar",
            "signup_pwd_leak",
        ),
    ),
    "asana": Documented(
        "https://developers.asana.com/docs/webhooks-guide",
        {
            "events": [
                {
                    "user": {"gid": S, "resource_type": "=user"},
                    "created_at": S,
                    "action": "={last}",
                    "resource": {"gid": S, "resource_type": "={object}", "resource_subtype": S},
                    "parent": "null",
                    "change?": {"field": S, "action": "=changed"},
                }
            ]
        },
        _of(
            "task project story section tag goal portfolio",
            "added",
            "changed",
            "deleted",
            "removed",
            "undeleted",
        ),
    ),
    "bigcommerce": Documented(
        "https://developer.bigcommerce.com/docs/integrations/webhooks/events",
        {
            "scope": "={kind}",
            "store_id": S,
            "data": {"type": S, "id": N},
            "hash": S,
            "created_at": N,
            "producer": S,
        },
        (
            *_of("store/order store/product store/customer store/category", "created", "updated", by="/"),
            "store/order/statusUpdated",
            "store/order/archived",
            "store/product/deleted",
            "store/product/inventory/updated",
            "store/cart/created",
            "store/cart/abandoned",
            "store/shipment/created",
            "store/sku/updated",
            "store/app/uninstalled",
        ),
    ),
    "box": Documented(
        "https://developer.box.com/guides/webhooks/triggers",
        {
            "type": "=webhook_event",
            "id": S,
            "created_at": S,
            "trigger": "={kind}",
            "webhook": {"id": S, "type": "=webhook"},
            "created_by": {"type": "=user", "id": S, "name": S, "login": S},
            "source": {"id": S, "type": S, "name": S},
            "additional_info": [],
        },
        (
            *(
                f"FILE.{each}"
                for each in [
                    "UPLOADED",
                    "PREVIEWED",
                    "DOWNLOADED",
                    "TRASHED",
                    "DELETED",
                    "RESTORED",
                    "COPIED",
                    "MOVED",
                    "RENAMED",
                ]
            ),
            *(
                f"FOLDER.{each}"
                for each in [
                    "CREATED",
                    "DOWNLOADED",
                    "RESTORED",
                    "DELETED",
                    "COPIED",
                    "MOVED",
                    "TRASHED",
                    "RENAMED",
                ]
            ),
            *_of("COMMENT COLLABORATION", "CREATED", "UPDATED", "DELETED"),
            *_of("TASK_ASSIGNMENT", "CREATED", "UPDATED"),
            *_of("SHARED_LINK METADATA_INSTANCE", "CREATED", "UPDATED", "DELETED"),
            "COLLABORATION.ACCEPTED",
            "SIGN_REQUEST.COMPLETED",
        ),
    ),
    "cal_com": Documented(
        "https://cal.com/docs/developing/guides/automation/webhooks",
        {
            "triggerEvent": "={kind}",
            "createdAt": S,
            "payload": {
                "type": S,
                "title": S,
                "startTime": S,
                "endTime": S,
                "organizer": {"name": S, "email": S, "timeZone": S},
                "attendees": [{"email": S, "name": S, "timeZone": S}],
                "uid": S,
                "bookingId": N,
                "eventTypeId": N,
                "status": S,
            },
        },
        (
            *tuple(
                f"BOOKING_{each}"
                for each in [
                    "CREATED",
                    "CANCELLED",
                    "RESCHEDULED",
                    "REQUESTED",
                    "REJECTED",
                    "PAYMENT_INITIATED",
                    "PAID",
                    "NO_SHOW_UPDATED",
                ]
            ),
            "MEETING_STARTED",
            "MEETING_ENDED",
            "RECORDING_READY",
            "INSTANT_MEETING",
        ),
    ),
    "calendly": Documented(
        "https://developer.calendly.com/api-docs/ZG9jOjE2OTU3ODgz-webhook-payload",
        {
            "event?": "={kind}",
            "created_at": S,
            "created_by": S,
            "payload": {
                "cancel_url?": S,
                "created_at": S,
                "email?": S,
                "event?": S,
                "name?": S,
                "questions_and_answers?": [],
                "reschedule_url?": S,
                "rescheduled?": B,
                "status?": S,
                "timezone?": S,
                "updated_at?": S,
                "uri": S,
            },
        },
        ("invitee.created", "invitee.canceled", "invitee_no_show.created", "invitee_no_show.deleted"),
    ),
    "checkout_com": Documented(
        "https://www.checkout.com/docs/developer-resources/event-notifications/webhook-event-types",
        {
            "id": S,
            "type": "={kind}",
            "version": S,
            "created_on": S,
            "data": {"id": S, "action_id": S, "amount": N},
        },
        tuple(
            f"payment_{each}"
            for each in [
                "approved",
                "declined",
                "captured",
                "capture_declined",
                "refunded",
                "refund_declined",
                "voided",
                "pending",
                "canceled",
                "expired",
                "returned",
                "authorization_incremented",
                "compliance_review",
            ]
        )
        + tuple(
            f"dispute_{each}"
            for each in ["received", "won", "lost", "accepted", "canceled", "expired", "resolved"]
        )
        + tuple(f"card_{each}" for each in ["verified", "verification_declined", "updated"]),
    ),
    "coinbase_commerce": Documented(
        "https://docs.cdp.coinbase.com/commerce-onchain/docs/webhooks-events",
        {
            "attempt_number": N,
            "event": {
                "api_version": S,
                "created_at": S,
                "data": {"code": S, "id": S, "name": S, "pricing_type": S},
                "id": S,
                "resource": "=event",
                "type": "={kind}",
            },
            "id": S,
            "scheduled_for": S,
        },
        _of("charge", "created", "confirmed", "failed", "delayed", "pending", "resolved", by=":"),
    ),
    "contentful": Documented(
        "https://www.contentful.com/developers/docs/webhooks/overview/",
        {
            "sys": {
                "type": S,
                "id": S,
                "space": {"sys": {"type": "=Link", "linkType": "=Space", "id": S}},
                "environment": {"sys": {"id": S, "type": "=Link", "linkType": "=Environment"}},
                "createdAt": S,
                "updatedAt": S,
                "revision": N,
                "version?": N,
            },
            "fields?": {},
        },
        tuple(
            f"ContentManagement.{each}.{done}"
            for each in ("Entry", "Asset", "ContentType")
            for done in [
                "create",
                "save",
                "auto_save",
                "publish",
                "unpublish",
                "archive",
                "unarchive",
                "delete",
            ]
            if each != "ContentType" or done in {"create", "save", "publish", "unpublish", "delete"}
        ),
    ),
    "docusign": Documented(
        "https://developers.docusign.com/platform/webhooks/connect/json-sim-event-model/",
        {
            "event": "={kind}",
            "apiVersion": S,
            "uri": S,
            "retryCount": N,
            "configurationId": N,
            "generatedDateTime": S,
            "data": {"accountId": S, "userId": S, "envelopeId": S},
        },
        tuple(
            f"envelope-{each}"
            for each in [
                "created",
                "sent",
                "resent",
                "delivered",
                "completed",
                "declined",
                "voided",
                "corrected",
                "purge",
                "deleted",
                "discard",
            ]
        )
        + tuple(
            f"recipient-{each}"
            for each in ["sent", "delivered", "completed", "declined", "autoresponded", "reassign"]
        )
        + ("template-created", "template-modified", "template-deleted"),
    ),
    "easypost": Documented(
        "https://docs.easypost.com/docs/events",
        {
            "id": S,
            "object": "=Event",
            "mode": S,
            "description": "={kind}",
            "created_at": S,
            "updated_at?": S,
            "previous_attributes": {},
            "completed_urls": [],
            "pending_urls": [],
            "status?": S,
            "result": {"id": S, "object": S, "created_at": S, "updated_at?": S, "status?": S},
        },
        (
            *_of("batch tracker scan_form refund", "created", "updated"),
            "insurance.purchased",
            "insurance.cancelled",
            "payment.created",
            "payment.completed",
            "payment.failed",
            "report.new",
            "report.available",
            "report.failed",
            "shipment.invoice.created",
            "shipment.invoice.updated",
        ),
    ),
    "gocardless": Documented(
        "https://developer.gocardless.com/api-reference/#appendix-webhooks",
        {
            "events": [
                {
                    "id": S,
                    "created_at": S,
                    "resource_type": "={object}",
                    "action": "={last}",
                    "links": {},
                    "details": {"origin": S, "cause": S, "description": S},
                    "metadata": {},
                }
            ],
            "meta": {"webhook_id": S},
        },
        (
            *_of(
                "payments",
                "created",
                "submitted",
                "confirmed",
                "paid_out",
                "failed",
                "cancelled",
                "charged_back",
            ),
            *_of(
                "mandates",
                "created",
                "submitted",
                "active",
                "reinstated",
                "transferred",
                "cancelled",
                "failed",
            ),
            *_of("subscriptions", "created", "payment_created", "cancelled", "finished", "paused", "resumed"),
            *_of("refunds", "created", "failed", "paid", "refund_settled"),
            "payouts.paid",
            "billing_requests.fulfilled",
        ),
    ),
    "hubspot": Documented(
        "https://developers.hubspot.com/docs/guides/api/app-management/webhooks",
        [
            {
                "eventId": N,
                "subscriptionId": N,
                "portalId": N,
                "appId": N,
                "occurredAt": N,
                "subscriptionType": "={kind}",
                "attemptNumber": N,
                "objectId": N,
                "changeSource": S,
            }
        ],
        _of(
            "contact company deal ticket product line_item",
            "creation",
            "deletion",
            "propertyChange",
            "merge",
            "restore",
            "associationChange",
        ),
    ),
    "intercom": Documented(
        "https://developers.intercom.com/docs/references/webhooks/webhook-models",
        {
            "type": "=notification_event",
            "app_id": S,
            "data": {
                "type": "=notification_event_data",
                "item": {"type": S, "id": S, "created_at": N, "updated_at": N},
            },
            "links": {},
            "id": S,
            "topic": "={kind}",
            "delivery_status": S,
            "delivery_attempts": N,
            "delivered_at": N,
            "first_sent_at": N,
            "created_at": N,
            "self": "null",
        },
        (
            *(
                f"conversation.{each}"
                for each in [
                    "user.created",
                    "user.replied",
                    "admin.replied",
                    "admin.assigned",
                    "admin.closed",
                    "admin.opened",
                    "admin.snoozed",
                    "admin.single.created",
                    "admin.noted",
                    "rating.added",
                    "read",
                    "deleted",
                ]
            ),
            *_of("contact.user contact.lead", "created", "updated"),
            *_of("company", "created", "updated", "deleted"),
            *_of("ticket", "created", "closed", "contact.replied", "admin.replied"),
            "contact.deleted",
            "contact.merged",
            "contact.unsubscribed",
            "event.created",
            "ping",
        ),
    ),
    "jira": Documented(
        "https://developer.atlassian.com/cloud/jira/platform/webhooks/",
        {
            "timestamp": N,
            "webhookEvent": "={kind}",
            "user?": {"self": S, "accountId": S, "displayName": S, "active": B},
            "issue?": {
                "id": S,
                "self": S,
                "key": S,
                "fields": {
                    "summary": S,
                    "created": S,
                    "updated": S,
                    "labels": [S],
                    "project": {"id": S, "key": S},
                },
            },
        },
        tuple(f"jira:issue_{each}" for each in ("created", "updated", "deleted"))
        + _of("comment worklog issuelink project board", "created", "deleted", by="_")
        + _of("comment worklog project board sprint", "updated", by="_")
        + (
            "jira:version_released",
            "jira:version_created",
            "sprint_started",
            "sprint_closed",
            "user_created",
        ),
    ),
    "lemon_squeezy": Documented(
        "https://docs.lemonsqueezy.com/guides/developer-guide/webhooks",
        {
            "meta": {
                "event_name": "={kind}",
                "test_mode": B,
                "webhook_id": S,
                "custom_data": {"customer_id?": N},
            },
            "data": {
                "type": S,
                "id": S,
                "attributes": {
                    "store_id": N,
                    "customer_id?": N,
                    "status": S,
                    "user_email": S,
                    "created_at": S,
                    "updated_at": S,
                    "test_mode": B,
                },
            },
        },
        (
            *_of("order subscription license_key", "created", by="_"),
            "order_refunded",
            "license_key_updated",
            *(
                f"subscription_{each}"
                for each in ["updated", "cancelled", "resumed", "expired", "paused", "unpaused"]
            ),
            *_of("subscription_payment", "success", "failed", "recovered", "refunded", by="_"),
        ),
    ),
    "mailgun": Documented(
        "https://documentation.mailgun.com/docs/mailgun/user-manual/events/webhooks",
        {
            "signature": {"token": S, "timestamp": "unix", "signature": S},
            "event-data": {
                "id": S,
                "timestamp": N,
                "log-level": S,
                "event": "={kind}",
                "message": {
                    "headers": {"to": S, "message-id": S, "from": S, "subject": S},
                    "attachments": [],
                    "size": N,
                },
                "recipient": S,
                "recipient-domain": S,
                "tags": [S],
                "user-variables": {},
                "campaigns": [],
            },
        },
        (
            "accepted",
            "delivered",
            "failed",
            "opened",
            "clicked",
            "unsubscribed",
            "complained",
            "rejected",
            "stored",
        ),
    ),
    "okta": Documented(
        "https://developer.okta.com/docs/concepts/event-hooks/",
        {
            "eventType": "=com.okta.event_hook",
            "eventTypeVersion": S,
            "cloudEventsVersion": S,
            "source": S,
            "eventId": S,
            "data": {
                "events": [
                    {
                        "uuid": S,
                        "published": S,
                        "eventType": "={kind}",
                        "version": S,
                        "displayMessage": S,
                        "severity": S,
                        "actor": {"id": S, "type": S, "alternateId": S, "displayName": S},
                        "target": [{"id": S, "type": S, "alternateId": S, "displayName": S}],
                        "outcome": {"result": S, "reason": "null"},
                        "transaction": {"type": S, "id": S, "detail": {}},
                    }
                ]
            },
            "eventTime": S,
            "contentType": S,
        },
        (
            *tuple(
                f"user.{each}"
                for each in [
                    "lifecycle.create",
                    "lifecycle.activate",
                    "lifecycle.deactivate",
                    "lifecycle.suspend",
                    "lifecycle.unsuspend",
                    "lifecycle.delete.initiated",
                    "account.lock",
                    "account.unlock",
                    "account.update_password",
                    "account.update_profile",
                    "session.start",
                    "session.end",
                    "mfa.factor.activate",
                    "mfa.factor.deactivate",
                    "authentication.sso",
                ]
            ),
            "group.user_membership.add",
            "group.user_membership.remove",
            "group.lifecycle.create",
            "application.lifecycle.create",
            "application.user_membership.add",
            "policy.rule.update",
        ),
    ),
    "pagerduty": Documented(
        "https://developer.pagerduty.com/docs/webhooks-overview",
        {
            "event": {
                "id": S,
                "event_type": "={kind}",
                "resource_type": S,
                "occurred_at": S,
                "agent": {"html_url": S, "id": S, "self": S, "summary": S, "type": S},
                "client": "null",
                "data": {
                    "id": S,
                    "type": S,
                    "self": S,
                    "html_url": S,
                    "status": S,
                    "title": S,
                    "created_at": S,
                },
            }
        },
        (
            *tuple(
                f"incident.{each}"
                for each in [
                    "triggered",
                    "acknowledged",
                    "unacknowledged",
                    "escalated",
                    "reassigned",
                    "delegated",
                    "reopened",
                    "resolved",
                    "priority_updated",
                    "annotated",
                    "responder.added",
                    "responder.replied",
                    "status_update_published",
                    "custom_field_values.updated",
                    "conference_bridge.updated",
                    "incident_type.changed",
                    "service_updated",
                ]
            ),
            "service.created",
            "service.updated",
            "service.deleted",
            "pagey.ping",
        ),
    ),
    "paypal": Documented(
        "https://developer.paypal.com/api/rest/webhooks/event-names/",
        {
            "id": S,
            "create_time": S,
            "resource_type": S,
            "event_type": "={kind}",
            "summary": S,
            "resource": {
                "id": S,
                "status?": S,
                "create_time": S,
                "update_time": S,
                "links?": [{"href": S, "rel": S}],
            },
            "links": [{"href": S, "rel": S, "method": S}],
            "event_version": S,
            "resource_version": S,
        },
        tuple(
            f"PAYMENT.CAPTURE.{each}"
            for each in ["COMPLETED", "DECLINED", "DENIED", "PENDING", "REFUNDED", "REVERSED"]
        )
        + tuple(f"PAYMENT.SALE.{each}" for each in ["COMPLETED", "DENIED", "PENDING", "REFUNDED", "REVERSED"])
        + tuple(f"PAYMENT.AUTHORIZATION.{each}" for each in ("CREATED", "VOIDED"))
        + tuple(
            f"BILLING.SUBSCRIPTION.{each}"
            for each in [
                "CREATED",
                "ACTIVATED",
                "UPDATED",
                "EXPIRED",
                "CANCELLED",
                "SUSPENDED",
                "PAYMENT.FAILED",
                "RE-ACTIVATED",
            ]
        )
        + tuple(f"CUSTOMER.DISPUTE.{each}" for each in ["CREATED", "UPDATED", "RESOLVED"])
        + tuple(
            f"CHECKOUT.ORDER.{each}" for each in ["APPROVED", "COMPLETED", "PROCESSED", "SAVED", "VOIDED"]
        )
        + tuple(
            f"INVOICING.INVOICE.{each}"
            for each in ["CREATED", "UPDATED", "PAID", "CANCELLED", "REFUNDED", "SCHEDULED"]
        )
        + tuple(f"VAULT.PAYMENT-TOKEN.{each}" for each in ("CREATED", "DELETED")),
    ),
    "postmark": Documented(
        "https://postmarkapp.com/developer/webhooks/webhooks-overview",
        {
            "RecordType": "={kind}",
            "ServerID?": N,
            "MessageStream": S,
            "MessageID": S,
            "Recipient": S,
            "Tag": S,
            "Metadata": {},
            "DeliveredAt?": S,
            "ReceivedAt?": S,
            "ChangedAt?": S,
        },
        ("Delivery", "Open", "Click", "SubscriptionChange"),
    ),
    "quickbooks": Documented(
        "https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks",
        {
            "eventNotifications": [
                {
                    "realmId": S,
                    "dataChangeEvent": {
                        "entities": [{"name": "={object}", "id": S, "operation": "={last}", "lastUpdated": S}]
                    },
                }
            ]
        },
        _of(
            "Customer Vendor Invoice Payment Bill Estimate Item Account Employee",
            "Create",
            "Update",
            "Delete",
        ),
    ),
    "razorpay": Documented(
        "https://razorpay.com/docs/webhooks/payloads/",
        {
            "entity": "=event",
            "account_id": S,
            "event": "={kind}",
            "contains": [S],
            "payload": {
                "payment": {"entity": {"id": S, "amount": N, "currency": S, "status": S, "created_at": N}}
            },
            "created_at": N,
        },
        (
            *_of(
                "payment",
                "authorized",
                "captured",
                "failed",
                "dispute.created",
                "dispute.won",
                "dispute.lost",
            ),
            *_of("order", "paid", "notification.delivered", "notification.failed"),
            *_of("refund", "created", "processed", "failed", "speed_changed"),
            *_of(
                "subscription",
                "authenticated",
                "activated",
                "charged",
                "pending",
                "halted",
                "cancelled",
                "completed",
            ),
            *_of("invoice payment_link", "paid", "partially_paid", "expired"),
            *_of("settlement", "processed"),
            *_of("fund_account.validation", "completed", "failed"),
        ),
    ),
    "sanity": Documented(
        "https://www.sanity.io/docs/http-reference/webhooks",
        {"_id": S, "_type": S, "_rev": S, "_createdAt": S, "_updatedAt": S, "title": S},
        ("create", "update", "delete"),
    ),
    "sentry": Documented(
        "https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
        {
            "action": "={last}",
            "installation": {"uuid": S},
            "data": {
                "issue?": {"id": S, "shortId": S, "title": S, "status": S, "firstSeen": S, "lastSeen": S}
            },
            "actor": {"type": S, "id": S, "name": S},
        },
        (
            *_of("issue", "created", "resolved", "assigned", "archived", "unresolved"),
            *_of("installation comment", "created", "deleted"),
            "comment.updated",
            "error.created",
            "event_alert.triggered",
            *_of("metric_alert", "critical", "warning", "resolved"),
        ),
    ),
    "trello": Documented(
        "https://developer.atlassian.com/cloud/trello/guides/rest-api/action-types/",
        {
            "action": {
                "id": S,
                "idMemberCreator": S,
                "data": {
                    "board": {"id": S, "name?": S, "shortLink?": S},
                    "card": {"id": S, "name?": S, "idShort": N},
                },
                "type": "={kind}",
                "date": S,
                "memberCreator": {"id": S, "fullName": S, "username": S},
            },
            "model": {"id": S, "name?": S, "desc": S, "closed": B, "url": S},
            "webhook?": {"id": S, "idModel": S, "callbackURL": S, "active": B},
        },
        (
            "createCard",
            "updateCard",
            "deleteCard",
            "copyCard",
            "commentCard",
            "updateComment",
            "deleteComment",
            "addMemberToCard",
            "removeMemberFromCard",
            "addLabelToCard",
            "removeLabelFromCard",
            "addAttachmentToCard",
            "deleteAttachmentFromCard",
            "addChecklistToCard",
            "removeChecklistFromCard",
            "updateCheckItemStateOnCard",
            "createList",
            "updateList",
            "moveListToBoard",
            "addMemberToBoard",
            "updateBoard",
            "moveCardToBoard",
            "moveCardFromBoard",
            "convertToCardFromCheckItem",
        ),
    ),
    "twilio_sendgrid_events": Documented(
        "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event",
        [
            {
                "email": S,
                "timestamp": N,
                "smtp-id": S,
                "event": "={kind}",
                "sg_event_id": S,
                "sg_message_id": S,
            }
        ],
        (
            "processed",
            "dropped",
            "delivered",
            "deferred",
            "bounce",
            "open",
            "click",
            "spamreport",
            "unsubscribe",
            "group_unsubscribe",
            "group_resubscribe",
        ),
    ),
    "twitch": Documented(
        "https://dev.twitch.tv/docs/eventsub/eventsub-subscription-types/",
        {
            "subscription": {
                "id": S,
                "status": "=enabled",
                "type": "={kind}",
                "version": S,
                "cost": N,
                "condition": {"broadcaster_user_id?": S},
                "transport": {"method": "=webhook", "callback": S},
                "created_at": S,
            },
            "event": {"broadcaster_user_id?": S, "broadcaster_user_login?": S, "broadcaster_user_name?": S},
        },
        (
            *tuple(
                f"channel.{each}"
                for each in [
                    "update",
                    "follow",
                    "subscribe",
                    "subscription.end",
                    "subscription.gift",
                    "subscription.message",
                    "cheer",
                    "raid",
                    "ban",
                    "unban",
                    "moderator.add",
                    "moderator.remove",
                    "ad_break.begin",
                    "chat.message",
                    "chat.clear",
                    "chat.notification",
                    "poll.begin",
                    "poll.progress",
                    "poll.end",
                    "prediction.begin",
                    "prediction.lock",
                    "prediction.end",
                    "goal.begin",
                    "goal.end",
                    "hype_train.begin",
                    "hype_train.end",
                    "channel_points_custom_reward.add",
                    "channel_points_custom_reward.update",
                    "channel_points_custom_reward_redemption.add",
                    "shield_mode.begin",
                    "shoutout.create",
                    "vip.add",
                    "warning.send",
                ]
            ),
            "stream.online",
            "stream.offline",
            "user.update",
            "user.authorization.grant",
            "user.authorization.revoke",
        ),
    ),
    "typeform": Documented(
        "https://www.typeform.com/developers/webhooks/example-payload/",
        {
            "event_id": S,
            "event_type": "={kind}",
            "form_response": {
                "form_id": S,
                "token": S,
                "landed_at": S,
                "submitted_at": S,
                "definition": {"id": S, "title": S, "fields": [{"id": S, "title": S, "type": S, "ref": S}]},
                "answers": [{"type": "=text", "text": S, "field": {"id": S, "type": S}}],
            },
        },
        ("form_response", "form_response_partial"),
    ),
    "vercel": Documented(
        "https://vercel.com/docs/webhooks/webhooks-api",
        {
            "id": S,
            "type": "={kind}",
            "createdAt": N,
            "region": "null|string",
            "payload": {
                "team": {"id": "null|string"},
                "user": {"id": S},
                "project": {"id": S},
                "target?": "null|string",
            },
        },
        (
            *(
                f"deployment.{each}"
                for each in [
                    "created",
                    "succeeded",
                    "promoted",
                    "error",
                    "canceled",
                    "ready",
                    "check-rerequested",
                    "cleanup",
                    "rollback",
                    "integration.action.start",
                    "checks.failed",
                    "checks.succeeded",
                ]
            ),
            *_of("project", "created", "removed", "renamed", "env-variable.created", "domain.created"),
            *_of("domain", "created", "renewal", "transfer-in.completed", "certificate.add"),
            *_of("integration-configuration", "permission-upgraded", "removed", "scope-change-confirmed"),
            *_of("integration-resource", "project-connected", "project-disconnected"),
            *_of("firewall", "attack", "system-rule-anomaly"),
            *_of("edge-config", "created", "deleted", "items.updated"),
            "marketplace.invoice.paid",
            "alerts.triggered",
            "observability.anomaly",
        ),
    ),
    "woocommerce": Documented(
        "https://woocommerce.com/document/webhooks/",
        {
            "id": N,
            "status?": S,
            "date_created?": S,
            "date_modified?": S,
            "meta_data?": [{"id": N, "key": S, "value": S}],
        },
        (
            *_of("order product", "created", "updated", "deleted", "restored"),
            *_of("coupon", "created", "updated", "deleted", "restored"),
            *_of("customer", "created", "updated", "deleted"),
        ),
    ),
    "xero": Documented(
        "https://developer.xero.com/documentation/guides/webhooks/overview/",
        {
            "events": [
                {
                    "resourceUrl": S,
                    "resourceId": S,
                    "eventDateUtc": S,
                    "eventType": "={last}",
                    "eventCategory": "={object}",
                    "tenantId": S,
                    "tenantType": "=ORGANISATION",
                }
            ],
            "lastEventSequence": N,
            "firstEventSequence": N,
            "entropy": S,
        },
        _of("INVOICE CONTACT CREDITNOTE SUBSCRIPTION", "CREATE", "UPDATE"),
    ),
    "zendesk": Documented(
        "https://developer.zendesk.com/api-reference/webhooks/event-types/webhook-event-types/",
        {
            "account_id": N,
            "detail": {"id": S, "created_at": S, "updated_at": S, "status": S, "subject": S},
            "event": {"current": S, "previous": S},
            "id": S,
            "subject": S,
            "time": S,
            "type": "={kind}",
            "zendesk_event_version": S,
        },
        (
            *(
                f"zen:event-type:ticket.{each}"
                for each in [
                    "created",
                    "comment_added",
                    "status_changed",
                    "priority_changed",
                    "subject_changed",
                    "tags_changed",
                    "agent_assignment_changed",
                    "group_assignment_changed",
                    "merged",
                    "marked_as_spam",
                    "soft_deleted",
                    "permanently_deleted",
                    "custom_field_changed",
                    "due_at_changed",
                    "type_changed",
                ]
            ),
            *(
                f"zen:event-type:user.{each}"
                for each in [
                    "created",
                    "deleted",
                    "merged",
                    "active_changed",
                    "role_changed",
                    "name_changed",
                    "tags_changed",
                    "suspended_changed",
                    "password_changed",
                    "last_login_changed",
                    "notes_changed",
                ]
            ),
            *_of(
                "zen:event-type:organization",
                "created",
                "deleted",
                "name_changed",
                "tags_changed",
                "external_id_changed",
            ),
            *_of("zen:event-type:article", "published", "unpublished", "comment_created", "vote_created"),
            *_of("zen:event-type:agent", "state_changed", "channel_created", "work_item_added"),
        ),
    ),
}
