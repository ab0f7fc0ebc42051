"""The ledger: every statement on hookonce's own tables, each with what it promises.

`store` takes events in, `claims` and `runs` carry them through their handlers, `upkeep` keeps the tables in
shape, `notes` and `handed` write what is beside them, `desk`, `desk_*` and `figures` answer an operator. Elsewhere
there is SQL only about the server (`database`), the schema (`migrations`, `health`) and the demo's proof.
"""
