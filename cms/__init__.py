"""Who may be taken down now: one ledger for all disruptions of a cloud, based on what HQ knows.

It moves nothing and takes nothing down itself: it only approves others' requests.
"""
