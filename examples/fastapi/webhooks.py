"""What happens when a webhook comes; `handlers` in hookonce.toml names this module."""

from models import Payment
from sqlmodel.ext.asyncio.session import AsyncSession

from hookonce import ReceivedEvent, on


@on("stripe", "invoice.paid")
async def book(event: ReceivedEvent, session: AsyncSession) -> None:
    """Book a payment: it is committed together with the event's `done`."""
    invoice = event.data["data"]["object"]
    session.add(Payment(invoice=invoice["id"], cents=invoice["amount_paid"]))
