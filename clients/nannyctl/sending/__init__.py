"""Reads from HQ, writes to it, and their results."""
