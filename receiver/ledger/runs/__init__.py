"""The life of a run: claimed under a lease, ended under its token, tried again.

- `claim_plan`: which runs of the due events to lease; no SQL
- `claims`: leases what is due, and starts it
- `due_events`, `claim_reads`, `claim_writes`: what a claim locks, what it reads besides, and what it writes
- `batch_size`, `due_for_batch`, `batch_claims`, `batches`: runs that one handler takes together, ended as one
- `batch_parts`: parts of those that failed or were lost, to be tried by themselves
- `unreadable`: rows that can't be read, kept from failing a claim
- `claimed`: what a worker holds between claim and end, and what it is told that has lost it
- `due_cursor`: where in the queue a worker looks next; no SQL
- `run_limits`, `limit_gate`: how often and how many at once a handler may run, and what is held back for that
- `rate_changes`: what another rate has put off, made due
- `breakers`: handlers that fail by one error again and again, stopped and tried
- `parking`: what is paused is passed over, and taken up again
- `clock`: what is begun anew when the database's clock was set back
- `renewal`: leases of long runs, and transactions under them
- `transitions`: what is started, let go of, taken up again
- `run_end`: how an attempt ends
- `event_status`: what that makes of its event
- `marks`: what a transaction leaves behind that its handler has committed by itself
- `takeover`: what is lost, and may be taken by others
"""
