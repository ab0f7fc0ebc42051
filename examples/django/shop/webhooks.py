"""What happens when a webhook comes. `python manage.py hookonce_worker` finds this module by its name."""

import logging

from django.db import transaction

from hookonce import on
from shop.models import Payment

log = logging.getLogger(__name__)


@on("stripe", "invoice.paid")
def book(event, connection):
    """Book a payment: it is committed together with the event's `done`."""
    invoice = event.data["data"]["object"]
    log.info("booking %s", invoice["id"])
    payment = Payment.objects.create(invoice=invoice["id"], cents=invoice["amount_paid"])
    transaction.on_commit(lambda: log.warning("booked %s", payment.invoice))
    return {"payment": payment.pk}
