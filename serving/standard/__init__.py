"""Calls that every server has: health and reflection; methods like any other."""
