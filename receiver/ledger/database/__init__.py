"""PostgreSQL itself: how it is reached, and what lies in it.

- `connections`: psycopg, every wait bounded; which database a connection reached
- `statements`: one statement, whose answer a thread or an event loop waits for
- `round_trip`: several statements in one round trip, by libpq itself; flushes of what was committed without
- `adapters`: how values are spelled and read, whatever a program has registered for its own cursors
- `arrays`: columns of values, packed for a statement that takes many rows
- `engines`: SQLAlchemy over psycopg, for handlers
- `schema`: the schema that they lie in, which every statement names
- `pinned`: settings of a session that statements rely on, whatever a role or a database carries
- `plans`: transactions on the queue, and how its statements are planned
- `session_reset`: what a handler leaves in a session, taken out before its COMMIT
- `tables`: the schema of a ledger, in SQL
- `public_tables`: the part of it that users may SELECT from
- `roles`, `functions`: what each role may do where there are several, and what is done for it with the owner's rights
- `schema_version`: the revision this code was written for, and the one that a ledger has
- `migrations`, `migrate`: Alembic's revisions, and what runs them under a lock
- `lock_holders`: who is in the way of that lock
"""
