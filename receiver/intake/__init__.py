"""The way of one delivery: verified, made into events, stored once, in one batch with whatever else came.

In order: `pipeline` is the story, written once for event loops and threads (`waits`), `verification` proves who sent
it, `handshake_secrets` trusts what a sender handed out, `load` holds sources to their limits (`limit_doubts` asks the
ledger whether they can be used up), `new_events` makes the ledger's rows, `group_commit` batches concurrent requests,
and `deduplication` takes a batch through window, ledger and settle. Beside the way: `background_writer` notes what
decides nothing, `quarantine_buffer` holds refused deliveries that are to be kept, `reverification` gives those another
chance, `rereading` reads unreadable deliveries anew, `consumers` takes deliveries from brokers, `test_events` sends
samples on request, `traced` makes spans of deliveries, `intake_result` has their outcome, `other_sites` knows what a
browser sends for a page of others, `explain` says why one is refused, and `sender_api` asks senders what never came.
"""
