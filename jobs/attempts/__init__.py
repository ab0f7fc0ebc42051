"""One attempt of one run.

- `attempt`: the handler inside its transaction, and how it ended
- `transaction_guard`: what a handler may not do with its connection
- `orm_session`, `coroutines`: the ORM session, and the event loop, of handlers that ask for them
- `time_limit`: what ends a handler that takes too long
- `traced`: an attempt as a span; needs the extra for OpenTelemetry
"""
