"""Operations that are done once per key: one state machine, three places to keep its records.

A record is in progress, completed, failed for good, failed for now, or expired; docs/decisions/0021 has the table.
The machine knows nothing of HTTP: what clients are told is in `receiver.endpoints`.

- `records`: what is kept of an operation, and what a request may do that meets it
- `fingerprint`: whether two requests are the same one
- `operation`: from a key to a claim or an answer, and from the work to the stored result
- `counted`, `traced`: the same with what became of each request counted, and in a span
- `postgresql`, `redis_hash`, `dynamodb`: the stores
- `sealed`: any of them, with its results encrypted
- `steps`: the store of what handlers do once for their event
"""
