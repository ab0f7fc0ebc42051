"""The ledger as of revision 0022: failed attempts say when they began."""

from django.db import migrations

from hookonce.django.ledger_migration import UpgradeLedger


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """One column more."""

    atomic = False  # the ledger is upgraded on a connection of its own
    dependencies = (("hookonce", "0001_ledger"),)
    operations = (UpgradeLedger("0022"),)
