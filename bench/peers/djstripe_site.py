"""dj-stripe's webhook view, to compare with: Django on gunicorn, what users of Stripe would pick.

Set up as its documentation says, signatures verified; an event of a type that nothing is synchronised for, so that no
question goes to Stripe. It makes a row for the delivery and one for the event, committed before the answer.
`python -m bench.peers.djstripe_site` makes the tables and the endpoint, and prints its path. It runs in an
environment of its own (`requirements.txt` beside it) and imports nothing of ours but the secret.
"""

import os
from urllib.parse import parse_qs, urlsplit

import django
from django.conf import settings

from bench.load.deliveries import SECRET

_url = urlsplit(os.environ["PEER_DATABASE_URL"].replace("postgresql+psycopg", "postgresql"))
_PLACE = parse_qs(_url.query)

_KEY = "sk_test_" + "0" * 24

settings.configure(
    SECRET_KEY="of a server that lives as long as the benchmark",  # noqa: S106
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="bench.peers.djstripe_urls",
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "djstripe"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": _url.path[1:],
            "USER": _url.username,
            "HOST": _PLACE.get("host", [_url.hostname or ""])[0],
            "PORT": _PLACE.get("port", [""])[0],
            "CONN_MAX_AGE": None,
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    USE_TZ=True,
    MIGRATION_MODULES=dict.fromkeys(("contenttypes", "auth", "djstripe")),  # its own take a minute of CPU
    DJSTRIPE_FOREIGN_KEY_TO_FIELD="id",
    STRIPE_TEST_SECRET_KEY=_KEY,
    STRIPE_API_HOST="http://127.0.0.1:9",  # nobody: nothing leaves this machine
    STRIPE_LIVE_MODE=False,
    LOGGING_CONFIG=None,
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402  Django has to be set up first

application = get_wsgi_application()


def main() -> None:
    """Make the tables and one endpoint; print the path that deliveries go to."""
    from django.core.management import call_command  # noqa: PLC0415  only here
    from djstripe.models import Account, APIKey, WebhookEndpoint  # noqa: PLC0415

    call_command("migrate", run_syncdb=True, verbosity=0)
    account, _ = Account.objects.get_or_create(id="acct_bench")
    APIKey.objects.get_or_create(
        secret=_KEY, defaults={"type": "secret", "livemode": False, "djstripe_owner_account": account}
    )
    endpoint, _ = WebhookEndpoint.objects.get_or_create(
        id="we_bench",
        defaults={
            "secret": SECRET,
            "livemode": False,
            "djstripe_owner_account": account,
            "enabled_events": ["*"],
            "url": "http://127.0.0.1/",
        },
    )
    print(f"/stripe/webhook/{endpoint.djstripe_uuid}/")


if __name__ == "__main__":
    main()
