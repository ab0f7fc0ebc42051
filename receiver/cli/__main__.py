"""`python -m receiver.cli` is `hookonce`."""

from receiver.cli import main

main()
