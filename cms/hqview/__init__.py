"""Follows HQ as a client: one part per location, and one picture of them all for the ledger."""
