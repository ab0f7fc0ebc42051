"""One attempt of what was claimed.

- `attempt`: the whole way of a run or a batch: begin, call the handler, end
- `failing`: every bad end
- `ports`: what is attempted, and what a handler writes in
- `handler_event`: the event that a handler is given, and the makers of its capabilities
- `transaction_guard`, `django_transaction` (needs the extra), `long_run`: the transaction that a handler writes in and
  may not end: SQLAlchemy's, Django's, none that stays
- `calls`: how handlers and callbacks are called; `orm_session`, `coroutines`: with an ORM session, on an event loop
- `shared`: what the attempts of a process share: `own_claims`, the `heartbeat` that renews them, `failure_streaks`
- `attempt_connection`: the connection that attempts are made on
- `driver_cursors`, `driver_connection`: psycopg's cursors, which look at each statement, and its connection
- `endings`: an end as it is written down, sealed where there are keys
- `train`: quick runs that share a flush of the disk
- `failure_callbacks`: who else hears of a failed attempt
- `last_claims`: what a worker held that died
- `time_limit`: what ends a handler that takes too long
- `traces`: an attempt as a span, which needs the extra for OpenTelemetry
"""
