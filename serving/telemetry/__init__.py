"""Metrics, logs and traces of a process."""
