"""What happens when a webhook comes; `handlers` in hookonce.toml names this module."""

from models import Payment, db

from hookonce import on


@on("stripe", "invoice.paid")
def book(event, tx):
    """Book a payment: it is committed together with the event's `done`."""
    invoice = event.data["data"]["object"]
    db.session.add(Payment(invoice=invoice["id"], cents=invoice["amount_paid"]))
