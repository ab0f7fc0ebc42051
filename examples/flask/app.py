"""A shop: `flask run`, or `gunicorn app:app`."""

import os

from flask import Flask
from models import Base, Payment
from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import Session

import hookonce.flask  # hookonce

app = Flask(__name__)
engine = create_engine(os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:", 1))

hookonce.flask.mount(app)  # hookonce


@app.get("/")
def income() -> dict[str, int]:
    """Tell what came in."""
    with Session(engine) as session:
        return {"cents": int(session.scalar(select(func.sum(Payment.cents))) or 0)}


@app.cli.command("create-tables")
def create_tables() -> None:
    """Make the tables."""
    Base.metadata.create_all(engine)
