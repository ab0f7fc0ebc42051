"""The ledger as of revision 0021, and what the admin reads of it."""

from django.db import migrations

from hookonce.django.ledger_migration import UpgradeLedger


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """The first."""

    initial = True
    atomic = False  # the ledger is upgraded on a connection of its own
    operations = (UpgradeLedger("0021"),)
