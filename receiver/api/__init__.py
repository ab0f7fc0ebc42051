"""The admin API under /api/v1: what an operator does on the command line, for programs.

A request comes in through `blueprint`; `server` takes it from its token to its answer, `request_reader` reads it
strictly, and `problem` is how it is refused. `operations` says what an operation is, `models` what its fields are made
of, `filters` which events it is about; `routes` lists all, `openapi` describes them. The operations: `events`,
`dead_letters`, `replays`, `steps`, `rejected`, `pulls`, `quarantine`, `sources`, `pauses`, `workers`, `maintenance` and
`history`. `mcp` asks as a client: tools for agents.
"""
