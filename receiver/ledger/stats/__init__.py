"""Sums that the receiver and the sweep keep, so that nobody counts the whole ledger, and what they say.

- `activity`: what happened per minute and hour
- `source_activity`: the same by source: when last, how much
- `event_counts`, `totals`: events by source and status
- `run_durations`: how long runs took
- `backlog`: what is due, waits, is dead or held
"""
