"""Migrations by which `manage.py migrate` makes and upgrades the ledger.

- `0001_initial`: the ledger, and what the admin reads of it
"""
