"""The ledger, and what the admin reads of it.

Of models that are not managed Django compares no fields, so each has its key here and nothing else.
"""

from django.db import migrations, models

from hookonce.django.ledger import table
from hookonce.django.ledger_migration import UpgradeLedger

_SHOWN = {"Event": "events", "Run": "run_states", "Failure": "failures"}
_ASKED = {"EventState": "event_states", "OpenRun": "queue", "Outcome": "runs"}


def _models(names: dict[str, str], **options: object) -> list[migrations.CreateModel]:
    key = [("id", models.BigIntegerField(primary_key=True))]
    return [
        migrations.CreateModel(name, key, {"managed": False, "db_table": table(of), **options})
        for name, of in names.items()
    ]


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """The first."""

    initial = True
    atomic = False  # the ledger is upgraded on a connection of its own
    operations = (UpgradeLedger(), *_models(_SHOWN), *_models(_ASKED, default_permissions=()))
