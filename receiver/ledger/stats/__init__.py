"""Sums that the receiver and the sweep keep, so that nobody counts the whole ledger, and what they say.

- `activity`: what happened per minute and hour
- `counters`: what leaves no row: repetitions, conflicts, lost leases, keys of requests; what became of batches
- `redeliveries`: how often an event came again
- `source_activity`: the same by source: when last, how much
- `totals`: events by source and status
- `event_counts`: what was accepted, pruned and replayed, so that the sums come to what came
- `run_durations`: how long runs took
- `issues`: failures by cause: when last, how many, and what a person has said of them
- `worker_slots`: what workers are at
- `backlog`: what is due, waits, is dead or held, is tried again, or in progress under a key
"""
