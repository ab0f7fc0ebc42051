"""One attempt of one run.

- `attempt`: the handler inside its transaction, and how it ended
- `attempt_connection`: the connection that attempts are made on
- `endings`: an end as it is written down
- `handler_transaction`: what a handler's transaction begins with, and must come back without
- `train`: quick runs that share a flush of the disk
- `held_claims`, `heartbeat`: the claims of a process, and what renews their leases
- `long_run`: handlers without an open transaction
- `transaction_guard`: what a handler may not do with its connection
- `statement_effects`: what a statement does to transaction and session, by its text
- `orm_session`, `coroutines`: the ORM session, and the event loop, of handlers that ask for them
- `batch_results`: what a handler of batches is given where it is alone, and returned
- `failure_rows`: failures in a row by one error, for circuit breakers
- `failure_callbacks`: who else hears of a failed attempt
- `last_attempt`: what a worker was at that died
- `time_limit`: what ends a handler that takes too long
- `django_executor`: the same on Django's connection; needs the extra for Django
- `listener`: who hears of attempts; `traces`: an attempt as a span, which needs the extra for OpenTelemetry
"""
