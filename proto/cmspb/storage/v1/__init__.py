"""The storage format, version 1."""
