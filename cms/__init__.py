"""Who may be taken down now: one ledger for all disruptions of a cloud, decided by what HQ knows.

It moves nothing and takes nothing down itself: it answers those who do.
"""
