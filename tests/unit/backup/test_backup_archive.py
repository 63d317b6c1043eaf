"""The file of a backup: whoever reads it to its end has read a whole one."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hq.backup.archive import BadBackup, Reader, Writer, verified
from hqpb.storage.v1 import backup_pb2

Records = list[tuple[bytes, bytes]]


def archive(records: Records) -> bytes:
    file = io.BytesIO()
    writer = Writer(file)
    writer.header(backup_pb2.BackupHeader(format=1, revision=7, prefix="/hq/v1/"))
    for key, value in records:
        writer.record(key, value)
    writer.footer()
    return file.getvalue()


SOME: Records = [(b"spec/a", b"x" * 300), (b"spec/b", b""), (b"status/a", b"\xff")]


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.binary(max_size=400))))
def test_what_was_written_is_read(records: Records) -> None:
    reader = Reader(io.BytesIO(archive(records)))
    assert reader.header.revision == 7
    assert [(record.key, record.value) for record in reader] == records


def test_the_summary_counts_by_kind() -> None:
    data = archive(SOME)
    summary = verified(io.BytesIO(data))
    assert summary.records == {"spec": 2, "status": 1}
    assert (summary.size_bytes, len(summary.sha256)) == (len(data), 32)


def test_a_backup_with_any_byte_changed_is_refused() -> None:
    data = archive(SOME)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x01
        with pytest.raises(BadBackup):
            verified(io.BytesIO(bytes(changed)))


def test_a_backup_that_ends_anywhere_is_refused() -> None:
    data = archive(SOME)
    for length in range(len(data)):
        with pytest.raises(BadBackup):
            verified(io.BytesIO(data[:length]))


def test_a_backup_with_something_behind_it_is_refused() -> None:
    with pytest.raises(BadBackup, match="has data after its end"):
        verified(io.BytesIO(archive(SOME) + b"\0"))


def test_another_file_is_told_from_a_damaged_one() -> None:
    for stranger in (b"", b"PK\x03\x04something", b"\xff" * 100, b"instances:\n- id: web-1\n"):
        with pytest.raises(BadBackup, match="not a backup of HQ"):
            verified(io.BytesIO(stranger))


def test_a_backup_in_a_newer_format_says_which() -> None:
    file = io.BytesIO()
    Writer(file).header(backup_pb2.BackupHeader(format=2))
    file.seek(0)
    with pytest.raises(BadBackup, match="format 2, this version of HQ reads format 1"):
        Reader(file)
