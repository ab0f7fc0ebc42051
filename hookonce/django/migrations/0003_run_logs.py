"""The ledger as of revision 0023: what handlers print and log is kept with the attempt."""

from django.db import migrations

from hookonce.django.ledger_migration import UpgradeLedger


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """One table more."""

    atomic = False  # the ledger is upgraded on a connection of its own
    dependencies = (("hookonce", "0002_failures_started"),)
    operations = (UpgradeLedger("0023"),)
