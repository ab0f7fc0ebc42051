"""Migrations by which `manage.py migrate` makes and upgrades the ledger.

- `0001_ledger`: revision 0021
- `0002_failures_started`: revision 0022
- `0003_run_logs`: revision 0023
- `0004_issues`: revision 0024
"""
