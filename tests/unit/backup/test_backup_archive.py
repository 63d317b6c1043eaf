"""The file of a backup: reading it to its end proves that it is complete."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hq.backup.archive import BackupReader, BackupWriter, BadBackup, choose_backup, header_of, verify_backups
from hq.backup.servers import CMS, HQ, NANNY
from hqpb.storage.v1 import backup_pb2
from store.keys import Keys

Records = list[tuple[bytes, bytes]]


def archive(records: Records, server: str = "hq", following: int = 0) -> bytes:
    file = io.BytesIO()
    writer = BackupWriter(file)
    writer.header(header_of(server, Keys(f"/{server}/v1/"), 7, b"", 0, following))
    for key, value in records:
        writer.record(key, value)
    writer.footer()
    return file.getvalue()


SOME: Records = [(b"spec/a", b"x" * 300), (b"spec/b", b""), (b"status/a", b"\xff")]


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.binary(max_size=400))))
def test_what_was_written_is_read(records: Records) -> None:
    reader = BackupReader(io.BytesIO(archive(records)))
    assert reader.header.revision == 7
    assert [(record.key, record.value) for record in reader] == records


def test_the_summary_counts_by_kind() -> None:
    data = archive(SOME)
    [summary] = verify_backups(io.BytesIO(data))
    assert summary.records == {"spec": 2, "status": 1}
    assert (summary.size_bytes, len(summary.sha256)) == (len(data), 32)


def test_a_backup_with_any_byte_changed_is_refused() -> None:
    data = archive(SOME)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x01
        with pytest.raises(BadBackup):
            verify_backups(io.BytesIO(bytes(changed)))


@pytest.mark.parametrize("data", [archive(SOME), archive(SOME, following=1) + archive(SOME, "cms")])
def test_a_backup_that_ends_anywhere_is_refused(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(BadBackup):
            verify_backups(io.BytesIO(data[:length]))


def test_a_backup_with_data_after_its_end_is_refused() -> None:
    with pytest.raises(BadBackup, match="has data after its end"):
        verify_backups(io.BytesIO(archive(SOME) + b"\0"))


def test_a_file_of_another_kind_is_not_called_a_damaged_backup() -> None:
    for stranger in (
        b"",
        b"PK\x03\x04something",
        b"\xff" * 100,
        b"instances:\n- id: web-1\n",
        b"meta: {id: web-1}\n" * 10,
    ):
        with pytest.raises(BadBackup, match="not a backup of HQ"):
            verify_backups(io.BytesIO(stranger))


def test_a_newer_format_is_refused_with_its_number() -> None:
    file = io.BytesIO()
    BackupWriter(file).header(backup_pb2.BackupHeader(format=3))
    file.seek(0)
    with pytest.raises(BadBackup, match="format 3, this version of HQ reads formats up to 2"):
        BackupReader(file)


def test_a_backup_of_hq_alone_is_in_the_format_that_older_versions_read() -> None:
    assert BackupReader(io.BytesIO(archive(SOME))).header.format == 1
    for newer in (archive(SOME, "cms"), archive(SOME, following=1)):
        assert BackupReader(io.BytesIO(newer)).header.format == 2


def test_the_backups_of_several_servers_in_one_file_are_read_apart() -> None:
    data = archive(SOME, following=1) + archive([(b"task/a", b"x")], "cms")
    backups = verify_backups(io.BytesIO(data))
    assert [(one.server, dict(one.records)) for one in backups] == [(HQ, {"spec": 2, "status": 1}), (CMS, {"task": 1})]
    file = io.BytesIO(data)
    file.seek(choose_backup(backups, CMS).start)
    assert [record.key for record in BackupReader(file)] == [b"task/a"]
    with pytest.raises(BadBackup, match=r"no backup of Nanny, but of: hq, cms \(--of\)"):
        choose_backup(backups, NANNY)


def test_a_file_that_lacks_one_of_its_backups_is_refused() -> None:
    parts = [archive(SOME, following=2), archive(SOME, "cms", following=1), archive(SOME, "nanny")]
    assert len(verify_backups(io.BytesIO(b"".join(parts)))) == 3
    with pytest.raises(BadBackup, match="the backup of Nanny does not belong after the one before it"):
        verify_backups(io.BytesIO(parts[0] + parts[2]))


def test_a_backup_of_an_unknown_server_says_so() -> None:
    with pytest.raises(BadBackup, match="server 'later', which this version of HQ does not know"):
        verify_backups(io.BytesIO(archive(SOME, "later")))
