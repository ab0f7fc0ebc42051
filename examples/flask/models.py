"""What the shop keeps."""

from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import BigInteger
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Of all models."""


db = SQLAlchemy(model_class=Base)


class Payment(db.Model):
    """Money that came in; nothing keeps an invoice from being booked twice but hookonce."""

    __tablename__ = "payments"

    id: Mapped[int] = mapped_column(primary_key=True)
    invoice: Mapped[str]
    cents: Mapped[int] = mapped_column(BigInteger)
