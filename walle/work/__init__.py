"""Decisions over records: read, decide, put, all in one transaction. No I/O of their own."""
