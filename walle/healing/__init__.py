"""Decides how a broken host is repaired, and when. Pure: no I/O, time comes in."""
