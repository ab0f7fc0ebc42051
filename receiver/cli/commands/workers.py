"""`hookonce workers`: the workers, and what each is running."""

from hookonce.receiver.cli.action_command import facts_of
from hookonce.receiver.desk.stats import list_workers

workers = facts_of(
    list_workers,
    "no worker runs many at once (`hookonce worker --concurrency`); `hookonce doctor` says whether any runs",
)
