"""hookonce on one machine: for development, for the demo, and for the tests. Nothing of it runs in production.

`embedded` runs PostgreSQL and Valkey without Docker, `generated_secrets` makes up what the configuration lacks, `stack`
runs receiver and worker beside them, `file_watch` tells what changes in the project, `log_lines` prints the logs for
people, and `demo` sends signed samples and checks what becomes of each.
"""
