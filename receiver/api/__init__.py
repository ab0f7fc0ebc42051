"""The admin API under `/api/v1`: what the command line can do, for programs."""
