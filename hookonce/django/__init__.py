"""The inbox inside a Django project (docs/how-to/django.md).

INSTALLED_APPS = [..., "hookonce.django"]                                  # settings.py
DATABASES = {"default": ledger_database()}                                 # settings.py, or as you have it
urlpatterns = [..., path("hooks/", include("hookonce.django.urls"))]       # urls.py

Handlers are in `webhooks.py` of any installed application; `python manage.py hookonce_worker` runs them.

- `apps`: the application that is installed
- `urls`, `views`: where webhooks are received
- `ledger`: the database that Django and hookonce share
- `nowhere`: the engine of its entry where nothing names one
- `ledger_migration`, `migrations`: how `migrate` makes and upgrades its tables
- `checks`: what `manage.py check` says of it
- `worker`: what runs the handlers, and which of them it can
- `coroutines`: how it runs those that are `async def`
- `management`: the command that starts it
- `models`, `admin`: events, runs and failed attempts, to be looked at
- `testing`: Django in tests of `hookonce.testing`
"""

try:
    import django as _django  # noqa: F401  is it there?
except ImportError:
    raise ImportError("hookonce.django needs Django: pip install 'hookonce[django]'") from None

from hookonce.django.ledger import ledger_database as ledger_database
