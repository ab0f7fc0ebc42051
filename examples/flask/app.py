"""A shop: `flask run`, or `gunicorn app:app`."""

import os

from flask import Flask
from models import Payment, db

import hookonce.flask  # hookonce

app = Flask(__name__)
DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql:///shop")
app.config["SQLALCHEMY_DATABASE_URI"] = DATABASE_URL.replace("postgresql:", "postgresql+psycopg:", 1)
db.init_app(app)

hookonce.flask.mount(app)  # hookonce


@app.get("/")
def income() -> dict[str, int]:
    """Tell what came in."""
    return {"cents": int(db.session.scalar(db.select(db.func.sum(Payment.cents))) or 0)}


@app.cli.command("create-tables")
def create_tables() -> None:
    """Make the tables."""
    db.create_all()
