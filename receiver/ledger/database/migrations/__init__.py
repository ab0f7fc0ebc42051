"""Alembic revisions, shipped inside the package; `hookonce db upgrade` runs them."""
