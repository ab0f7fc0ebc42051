"""Django in the test's process, its databases those of the test."""

import django
import pytest
from django.conf import settings
from django.db import connections

from hookonce.django import ledger_database

ALIASES = ("default", "other")


def set_up():
    """Configure Django, once in a process."""
    if not settings.configured:
        nowhere = {"ENGINE": "django.db.backends.postgresql", "NAME": "nowhere"}
        settings.configure(
            SECRET_KEY="of the tests",
            INSTALLED_APPS=["hookonce.django"],
            ROOT_URLCONF="tests.support.django_urls",
            DATABASES={alias: dict(nowhere) for alias in ALIASES},
            USE_TZ=True,
            TIME_ZONE="America/New_York",
            ALLOWED_HOSTS=["*"],
        )
        django.setup()


set_up()


def lead(alias, entry):
    """Have an alias lead elsewhere from now on."""
    if any(each.alias == alias for each in connections.all(initialized_only=True)):
        connections[alias].close()
        del connections[alias]
    connections.settings[alias] = connections.configure_settings({"default": {}, alias: dict(entry)})[alias]


@pytest.fixture
def entry(database_url, monkeypatch):
    """The entry of DATABASES that leads to the ledger; `default` is it."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    found = ledger_database()
    lead("default", found)
    yield found
    connections.close_all()
