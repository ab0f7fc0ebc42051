"""The receiving side of hookonce: HTTP in, ledger rows out."""
