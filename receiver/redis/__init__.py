"""Everything that talks to Redis. Without Redis hookonce is slower and nothing else; a Redis that lies is no worse.

`client` makes a client of REDIS_URL and turns every error into one of ours, `bounded_socket` bounds each answer in
time and size, `answers` in kind and number, `circuit_breaker` stops asking a Redis that fails, `cluster` finds the
nodes of a Redis Cluster, `dedup_window` remembers recent events, `rate_limits` counts what may come, `work_queue`
notifies workers, `pending` counts notifications, `workers` counts workers, `sign_in_attempts` counts who guesses the
dashboard's token, and `approximate` remembers ids of which a few may be mistaken.
"""
