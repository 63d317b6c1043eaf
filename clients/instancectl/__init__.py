"""The supervisor of one instance: prepares its revisions, runs the one wanted READY, reports all of them to HQ.

Reading tour: `wanted/desired` (what is wanted) and `wanted/plan` (what to do about it) decide; `supervisor` does it, by
`content/prepare`, `containers/running` and `containers/container`; `reports/reporter` tells HQ. Decisions are in files
without I/O: `wanted/plan`, `reports/schedule`, `reports/subject`, `reports/conditions`.
"""
