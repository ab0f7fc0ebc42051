"""The slots of one worker process: one in its main thread, or N threads (docs/decisions/0020).

- `slot`: one slot: makes one attempt at a time, and settles what was cut off before it makes another
- `capacity`: what a claim may lease, and what a slot may start: slow handlers hold up no others
- `batches`: batches, made in a slot
- `single_slot`: one slot in the main thread, which claims between its attempts
- `pool`: many slots, and the thread that claims for them
- `slot_limit`: the time limit of a thread, and the watchdog that holds all slots to theirs
- `lost_slots`: slots that nothing ended, and what is given back when the process stops
"""
