"""`stack` runs the servers and processes, `handlers` is the user's part, `process_costs` what all take."""
