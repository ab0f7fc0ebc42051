"""What the shop keeps."""

from sqlalchemy import BigInteger
from sqlmodel import Field, SQLModel


class Payment(SQLModel, table=True):
    """Money that came in; nothing keeps an invoice from being booked twice but hookonce."""

    __tablename__ = "payments"

    id: int | None = Field(default=None, primary_key=True)
    invoice: str
    cents: int = Field(sa_type=BigInteger)
