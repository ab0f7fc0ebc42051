"""`python -m hookonce.receiver.cli` is `hookonce`."""

from hookonce.receiver.cli import main

main()
