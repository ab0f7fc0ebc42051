"""The admin API under /api/v1: what an operator does on the command line, for programs.

Its operations are the actions of the desk (`receiver.desk`); `routes` says where each is. A request comes in through
`blueprint`; `server` takes it from its token to its answer, `request_reader` reads it strictly, and `problem` is how it
is refused. `openapi` describes them all. `remote_desk` asks
another inbox by them, and so do `mcp`'s tools for agents.
"""
