"""`hookonce events diff`: what is other in an event's body than in the last one of its kind that went well."""

from hookonce.receiver.cli.action_command import facts_of
from hookonce.receiver.desk.diffs import diff_event

diff = facts_of(diff_event, name="diff")
