"""The supervisor of one instance: prepares its revisions, runs the one wanted READY, reports all of them to HQ.

Reading tour: `desired` (what is wanted) and `plan` (what to do about it) decide; `supervisor` does it, by `prepare`,
`running` and `section`; `reporter` tells HQ. Decisions are in files without I/O: `plan`, `life`, `restart`,
`readiness`, `schedule`, `subject`, `conditions`, `fingerprint`.
"""
