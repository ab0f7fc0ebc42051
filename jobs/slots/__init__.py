"""The slots of one worker process: one in its main thread, or N threads (docs/decisions/0020).

- `slot`: one slot: makes one attempt at a time, and settles what was cut off before it makes another
- `capacity`: what a claim may lease, and what a slot may start: slow handlers hold up no others
- `batches`: batches, made in a slot
- `single_slot`: one slot in the main thread, which claims between its attempts
- `pool`: many slots, and the thread that claims for them
- `slot_limit`: the time limit of a thread, and how long a process waits for what may yet end by itself
- `watchdog`: holds all slots to their limits
- `lost_slots`: slots that nothing ended, and what is given back when the process stops
- `suspects`: what may have been under way when a process died, run by children of the supervisor
"""
