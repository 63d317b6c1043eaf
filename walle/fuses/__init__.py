"""Limits on automatic work, the switches that they trip, and credits. Pure: no I/O, time comes in."""
