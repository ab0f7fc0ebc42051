"""`hookonce.idempotent`: people's own endpoints, done once per key, in Flask, Django and FastAPI.

The machine, its records and their stores are `receiver.idempotency`; here is what HTTP makes of it.

- `policy`: what clients are told, how their keys are read, and which answers end an operation
- `endpoint`: what decorates an endpoint
- `exchange`: one request, from its key to its answer
- `attempt`: what the endpoint's function sees of its operation
- `stores`: the store that an operation's records are in
- `frameworks`: what Flask, Django and FastAPI tell of a request
"""
