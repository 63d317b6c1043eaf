"""Snapshots: their content, and how it changes an instance. Pure."""
