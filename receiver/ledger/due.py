"""When an event is due, for every statement that asks; each condition is of a row of `events`, without an alias."""

IS_DUE = "due_at <= now() AND parked IS NULL"
"""Its time has come and it is not parked; its source may have been paused just now."""

IS_OPEN = "(due_at IS NOT NULL AND parked IS NULL OR parked IS NOT NULL)"
"""It is not over: there is a partial index for each side of the OR."""

IS_NOT_PAUSED = "source NOT IN (SELECT name FROM hookonce.pauses WHERE kind = 'source')"

MAY_BE_CLAIMED = f"{IS_DUE} AND {IS_NOT_PAUSED}"
"""A worker may take it: its time has come, and nobody has paused its source."""

IS_DUE_SINCE = f"{IS_DUE} AND due_at >= coalesce(%(since)s::timestamptz, '-infinity')"
"""It is due, and has not been for longer than since a time that is given, if one is."""
