"""Receives webhooks in front of a Flask application."""

from flask import Flask

from hookonce.receiver.web.mounted import FrontDoor, guest


def mount(app: Flask, at: str = "/hooks/") -> None:
    """Have an application receive webhooks: what begins with `at` is answered by hookonce, before Flask's routing.

    Reads hookonce.toml and the environment, and raises `ConfigError` with every mistake there. Connections are opened
    with the first delivery, so after any fork. Where no server is named, as in tests, deliveries get 503.
    """
    door = FrontDoor({at: guest(at)}, app.wsgi_app)
    app.wsgi_app = door  # type: ignore[method-assign]  # Flask's own way
