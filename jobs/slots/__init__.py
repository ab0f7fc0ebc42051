"""Many runs at once in one worker process, `--concurrency N`: a thread each (docs/decisions/0020).

- `pool`: claims, hands runs to free slots, stops
- `slot`: one thread, one run at a time
- `batch_slot`: the thread that takes batches
- `ending`: slots that nothing ended, and what is given back when the process stops
- `failure_calls`: the callbacks of what was ended for a lost slot
- `shelf`: runs that are leased and not started yet, claim by claim
- `pace`: how many slow runs a second the slots end
- `occupancy`: what the slots are at, and what may be started or leased besides
- `room`: what a claim may start, slow handlers among it
- `slot_limit`: the time limit of a thread
- `watchdog`: holds all slots to their limits
- `patience`: how long a process waits for what may yet end by itself
- `suspects`: what may have been under way when a process died, run by children of this one, each by itself
- `suspect_child`: one such child, which outlives its parent
"""
