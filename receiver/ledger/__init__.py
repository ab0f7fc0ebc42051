"""The ledger: all SQL but that of idempotency keys, one package. PostgreSQL is the truth, all else makes it fast.

What takes deliveries in and what runs handlers read and write rows here and nowhere else:

- `database`: connections and engines, the tables, their migrations
- `states`: the statuses of events and runs, and the moves that are allowed
- `reasons`: why a run that is open is not run yet, and what may be paused
- `rows`: which fields of a shape are columns of which table, and what rows that are shown are made of
- `store`: takes events in; the unique key decides what is new
- `rejected`, `quarantine`, `handshake_secrets`: what else a delivery may leave
- `runs`: the life of a run, from its claim to its end
- `handlers`, `pauses`: which handlers workers have announced, and what a person has paused
- `replay`: running stored events again, by name or all that match
- `commands`: what became of commands
- `steps`: steps of handlers, what a person decides about them, and the keys that others know them by
- `entities`: the newest version of each object that a handler has done
- `waits`: what handlers wait for, and the first event of each key that came
- `queries`: what an operator looks up; reads only
- `decryption`, `results`, `traceback_frames`: bodies, results and errors, opened
- `withheld`: rows without their content, until it is asked for
- `id_at_time`: where in the ledger a time is
- `stats`: sums that are kept, and what they say
- `alerts`: what is wrong, and was
- `access`: tokens, sessions, and what people did
- `maintenance`: partitions, retention, another encryption key
"""
