"""The tables, in the database that each test gets a copy of."""

import pytest
from models import SQLModel
from sqlalchemy import create_engine


@pytest.fixture(scope="session")
def hookonce_tables(hookonce_database_url: str) -> None:
    """Make them."""
    engine = create_engine(hookonce_database_url.replace("postgresql:", "postgresql+psycopg:", 1))
    SQLModel.metadata.create_all(engine)
    engine.dispose()
