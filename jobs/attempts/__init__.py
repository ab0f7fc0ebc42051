"""One attempt of what was claimed.

- `attempt`: the whole way of a run or a batch: begin, call the handler, end
- `failing`: every bad end
- `ports`: what is attempted, and what a handler writes in
- `handler_event`: the event that a handler is given, and the makers of its capabilities
- `handler_transaction`, `django_transaction` (needs the extra), `long_run`: SQLAlchemy's, Django's, none that stays
- `calls`: how handlers and callbacks are called; `orm_session`, `coroutines`: with an ORM session, on an event loop
- `shared`: what the attempts of a process share
- `attempt_connection`: the connection that attempts are made on
- `transaction_guard`: what a handler may not do with its connection
- `driver_cursors`, `driver_connection`: psycopg's cursors and connection, as handlers have them
- `endings`: an end as it is written down, sealed where there are keys
- `train`: quick runs that share a flush of the disk
- `heartbeat`: the claims of a process, and what renews their leases
- `failure_rows`: failures in a row by one error, for circuit breakers
- `failure_callbacks`: who else hears of a failed attempt
- `last_claims`: what a worker held that died
- `time_limit`: what ends a handler that takes too long
- `listener`: who hears of attempts; `traces`: an attempt as a span, which needs the extra for OpenTelemetry
"""
