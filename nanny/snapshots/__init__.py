"""Snapshots: what is in one, and what it makes of an instance. Pure."""
