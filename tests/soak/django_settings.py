"""Settings of the Django project whose worker is one of a soak's."""

from hookonce.django import ledger_database

SECRET_KEY = "of the tests"
INSTALLED_APPS = ["hookonce.django"]
DATABASES = {"default": ledger_database()}
USE_TZ = True
