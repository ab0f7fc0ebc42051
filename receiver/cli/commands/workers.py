"""`hookonce workers`: the workers that run many at once, and what holds others up."""

from hookonce.receiver.cli.action_command import facts_of
from hookonce.receiver.desk.stats import list_workers

workers = facts_of(
    list_workers,
    "no worker runs many at once (`hookonce worker --concurrency`); `hookonce doctor` says whether any runs",
)
