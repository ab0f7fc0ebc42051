"""The admin API under `/api/v1`: what an operator does on the command line, for programs."""
