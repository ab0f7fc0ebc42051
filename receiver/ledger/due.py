"""When a run is due, for every statement that asks; each condition is of a row of `queue`, without an alias."""

from hookonce.receiver.ledger.reasons import IS_NOT_PAUSED

IS_DUE = "due_at <= now() AND waits IS NULL AND token IS NULL"
"""Its time has come, nothing keeps it waiting and nobody is at it; it may have been paused just now."""

MAY_BE_CLAIMED = f"{IS_DUE} AND {IS_NOT_PAUSED}"
"""A worker may take it: its time has come, and nothing that the row is told by is paused."""

IS_DUE_SINCE = f"{IS_DUE} AND due_at >= coalesce(%(since)s::timestamptz, '-infinity')"
"""It is due, and has not been for longer than since a time that is given, if one is."""
