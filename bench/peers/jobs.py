"""The job that hookonce and the task queues are compared at: one row a job, and another if it is run again.

Each queue is as its documentation sets it up, its job's write committed on a connection of its own, as in users'
code, before the queue hears that the job is done. `python -m bench.peers.NAME_jobs fill N` sends so many jobs. They
run in the environment of the peers (`requirements.txt` beside it); this file imports nothing, so that ours has it too.
"""

TABLE = """
CREATE TABLE IF NOT EXISTS job_effects (job bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX IF NOT EXISTS job_effects_job ON job_effects (job)
"""
WRITE = "INSERT INTO job_effects (job) VALUES (%s)"

AT_ONCE = 8
"""Jobs at once in one worker, where a queue can be told."""
NOTICED = 5
"""Seconds until a killed worker's jobs are given to another, for runs with kills; queues come with 30 s to an hour."""
IMPATIENT = "PEER_IMPATIENT"
"""The variable that says that workers will be killed."""
