"""The life of a run: claimed under a lease, ended under its token, tried again (docs/decisions/0036).

A run that is open is a row of the table `queue`, one that has ended a row of `runs`.

- `decisions`: what a worker decides on each due run; no SQL
- `claims`: leases what is due, by what the worker decides
- `due_rows`: reads and locks rows for a claim: what is due, suspects, batches
- `due_cursor`: where in the queue a worker looks next; no SQL
- `claimed`: what a worker holds between claim and end, and what it is told that has lost it
- `leases`: keeps what is claimed, and lets go of it
- `ends`: ends attempts that succeed, in the handler's transaction
- `failed_attempts`: ends those that failed, apart from it: the run waits, or is dead
- `takeover`: what workers have lost: suspects, and what may be taken by others
- `batches`: runs that one handler takes together, ended as one, and their parts when that failed
- `run_limits`, `limit_gate`: how often and how many at once a handler may run, and what is held back for that
- `breakers`: handlers that fail by one error again and again, stopped and tried
- `parking`: what is paused is passed over, and taken up again
- `ignored`: events that nobody took, taken up again
- `queue_pages`: what waits for its time and is to come at another, for its rate or the clock was changed
"""
