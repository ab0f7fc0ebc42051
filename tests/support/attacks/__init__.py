"""Attacks on a receiver at full rate (`flood`, a process of its own), and what honest senders notice (`honest`)."""
