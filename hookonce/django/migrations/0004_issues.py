"""The ledger as of revision 0024: failures say which issue they are of, and on which release."""

from django.db import migrations

from hookonce.django.ledger_migration import UpgradeLedger


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """Two tables more."""

    atomic = False  # the ledger is upgraded on a connection of its own
    dependencies = (("hookonce", "0003_run_logs"),)
    operations = (UpgradeLedger("0024"),)
