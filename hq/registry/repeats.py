"""The quick way for what almost every report is: a repetition of what its agent said before, known by its digest.

What has the digest of the stored report was checked when that was stored, so only what the digest does not cover is
looked at here. Anything that is not plainly a beat takes the long way (reports.py), which says what is wrong with it.
"""

from __future__ import annotations

from hq.liveness.heartbeats import Beat
from hq.memory.entry import Entry
from hqpb.v1 import service_pb2


def beat_of(entry: Entry, report: service_pb2.ReportStatusRequest, digest: int) -> Beat | None:
    """The beat that a report of this instance is; None: it is something else, or somebody else's."""
    revision, traits = report.revision, entry.traits
    wanted = revision.id
    position = next((i for i, mark in enumerate(entry.marks) if mark.id == wanted), -1)
    if position < 0:
        return None
    mark = entry.marks[position]
    sequence = revision.sequence
    plain = (
        digest == mark.digest
        # What is unanswered is older than what is stored already, and is refused.
        and (not report.unsettled or sequence == mark.sequence)
        and report.uid == traits.uid
        and report.node == traits.node
        and revision.incarnation == mark.incarnation
        and sequence >= mark.sequence
        and sequence > 0
        and wanted in traits.revisions
    )
    return Beat(traits.uid, entry.status_version, position) if plain else None


def beat_of_stored(entry: Entry, report: service_pb2.ReportStatusRequest, digest: int) -> Beat | None:
    """The beat that the very report which is stored is, come again; None: it is something else.

    It must not be written: HQ rewrites statuses too, so a record that tells of no newer report renews nobody.
    """
    beat = beat_of(entry, report, digest)
    return beat if beat is not None and report.revision.sequence == entry.marks[beat.position].sequence else None
