"""An inbox beside a table of a user's own, and the ORM's model of that."""

import pytest
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Credit(Base):
    __tablename__ = "credits"
    event: Mapped[str] = mapped_column(primary_key=True)


@pytest.fixture
def shop(inbox):
    inbox.connection.execute(
        "CREATE TABLE credits (event text PRIMARY KEY); INSERT INTO credits VALUES ('taken')"
    )
    return inbox


def credited(shop):
    return [row[0] for row in shop.rows("SELECT event FROM credits WHERE event <> 'taken' ORDER BY 1")]


def errors(shop):
    return [row[0] for row in shop.rows("SELECT error FROM hookonce.failures ORDER BY id")]
