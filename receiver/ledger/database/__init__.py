"""PostgreSQL itself: how it is reached, and what lies in it.

- `connections`: psycopg, every wait bounded; which database a connection reached
- `statements`: one statement, whose answer a thread or an event loop waits for
- `round_trip`: several statements in one round trip, by libpq itself
- `adapters`: how values are spelled and read, whatever a program has registered for its own cursors
- `arrays`: columns of values, packed for a statement that takes many rows
- `engines`: SQLAlchemy over psycopg, for handlers
- `schema`: the schema that they lie in, which every statement names
- `flushing`: makes durable what was committed without waiting for the disk
- `plans`: transactions on the queue, and how its statements are planned
- `session_reset`: what a handler leaves in a session, taken out before its COMMIT
- `tables`: the tables, as SQLAlchemy Core knows them
- `roles`, `functions`: what each role may do where there are several, and what is done for it with the owner's rights
- `schema_found`: what a database has instead of the schema that this code needs
- `schema_version`: the revision this code was written for
- `migrations`, `migrate`: Alembic's revisions, and what runs them under a lock
- `former_tables`, `live_upgrade`: a ledger of before the queue, taken over in steps while it is used
- `upgrade_plan`: what an upgrade would do
- `lock_holders`: who is in the way of that lock
"""
