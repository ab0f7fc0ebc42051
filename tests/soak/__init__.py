"""Many processes, many copies, and kills all the while: `make soak`."""
