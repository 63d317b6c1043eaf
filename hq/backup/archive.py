"""The file: BackupItems (storage/v1/backup.proto), each after its length; a footer proves that nothing is missing.

A file holds the backup of one server, or of several one after the other: each says how many follow.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple

from google.protobuf.message import DecodeError

from hq.backup.servers import HQ, SERVERS, BackedUpServer
from hq.memory.frames import varint
from hqpb.storage.v1 import backup_pb2
from store.keys import Keys

FORMAT: Final = 2  # 1: of HQ alone, as older versions read it
_LARGEST_ITEM: Final = 64 << 20


class BadBackup(Exception):
    """The file is not a complete backup: use another one."""


class Summary(NamedTuple):
    """The number of records of a backup by kind of key, its checksum, and where in the file it begins."""

    server: BackedUpServer
    header: backup_pb2.BackupHeader
    records: Counter[str]
    size_bytes: int
    sha256: bytes
    start: int


def header_of(
    server: str, keys: Keys, revision: int, epoch: bytes, unix_ms: int, following: int
) -> backup_pb2.BackupHeader:
    """The header of a backup, in the oldest format that can express it."""
    header = backup_pb2.BackupHeader(revision=revision, epoch=epoch, prefix=keys.prefix.decode(), unix_ms=unix_ms)
    header.server, header.following = "" if server == HQ.name else server, following
    header.format = FORMAT if header.server or following else 1
    return header


class BackupWriter:
    """Writes a backup, item by item."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._sum = file, hashlib.sha256()
        self.records = self.size_bytes = 0

    def header(self, header: backup_pb2.BackupHeader) -> None:
        """Write the header."""
        self._write_item(backup_pb2.BackupItem(header=header))

    def record(self, key: bytes, value: bytes) -> None:
        """Write one record; its key is without the prefix."""
        self._write_item(backup_pb2.BackupItem(record=backup_pb2.BackupRecord(key=key, value=value)))
        self.records += 1

    def footer(self) -> bytes:
        """Write the footer; return the checksum."""
        sha256 = self._sum.digest()
        self._write_item(backup_pb2.BackupItem(footer=backup_pb2.BackupFooter(records=self.records, sha256=sha256)))
        return sha256

    def _write_item(self, item: backup_pb2.BackupItem) -> None:
        body = item.SerializeToString()
        data = varint(len(body)) + body
        self._sum.update(data)
        self.size_bytes += len(data)
        self._file.write(data)


class BackupReader:
    """Reads a server's backup and checks it on the way: iterating to the end proves that it is complete.

    Attributes:
        start: where in the file it begins.
        header: read at once.
        server: whose backup it is.
        sha256: known at the end.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Raises BadBackup."""
        self._file, self._sum, self._records = file, hashlib.sha256(), 0
        self.start = file.tell()
        self.size_bytes = 0
        self.sha256 = b""
        first = self._item()
        if first.WhichOneof("item") != "header":
            raise self._damage_error() if self.start else BadBackup("not a backup of HQ")
        self.header = first.header
        if not 1 <= self.header.format <= FORMAT:
            raise BadBackup(
                f"the backup has format {self.header.format}, this version of HQ reads formats up to {FORMAT}"
            )
        server = SERVERS.get(self.header.server or HQ.name)
        if server is None:
            raise BadBackup(f"the backup is of server {self.header.server!r}, which this version of HQ does not know")
        self.server = server

    def __iter__(self) -> Iterator[backup_pb2.BackupRecord]:
        """The records. Raises BadBackup."""
        while True:
            before = self._sum.digest()
            item = self._item()
            kind = item.WhichOneof("item")
            if kind == "record":
                self._records += 1
                yield item.record
            elif kind == "footer":
                self._check(item.footer, before)
                return
            else:
                raise BadBackup(f"the backup contains unknown data after {self._records} records")

    def _check(self, footer: backup_pb2.BackupFooter, sha256: bytes) -> None:
        if footer.records != self._records or footer.sha256 != sha256:
            raise BadBackup("the backup's checksum does not match: it was changed or damaged")
        if not self.header.following and self._file.read(1):
            raise BadBackup("the backup has data after its end: it was changed")
        self.sha256 = sha256

    def _item(self) -> backup_pb2.BackupItem:
        head, size = self._length()
        body = self._file.read(size)
        if len(body) < size:
            raise self._cut()
        try:
            item = backup_pb2.BackupItem.FromString(body)
        except DecodeError:
            raise self._damage_error() from None
        self._sum.update(head + body)
        self.size_bytes += len(head) + size
        return item

    def _length(self) -> tuple[bytes, int]:
        """The varint before an item, as bytes and as a number."""
        head = b""
        while not head or head[-1] & 0x80:
            byte = self._file.read(1)
            if not byte:
                raise self._cut()
            head += byte
            if len(head) > 5:
                raise self._damage_error()
        size = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(head))
        if size > _LARGEST_ITEM:
            raise self._damage_error()
        return head, size

    def _cut(self) -> BadBackup:
        if not self.start and not self.size_bytes:
            return BadBackup("not a backup of HQ")
        return BadBackup(f"the backup is truncated after {self._records} records: it was not written completely")

    def _damage_error(self) -> BadBackup:
        if not self.start and not self.size_bytes:
            return BadBackup("not a backup of HQ")
        return BadBackup(f"the backup is damaged after {self._records} records")


def verify_backups(file: BinaryIO) -> list[Summary]:
    """Read a file to its end: the backups in it. Raises BadBackup."""
    found: list[Summary] = []
    while not found or found[-1].header.following:
        reader = BackupReader(file)
        if found and reader.header.following != found[-1].header.following - 1:
            raise BadBackup(f"the backup of {reader.server.title} does not belong after the one before it")
        records = Counter(record.key.partition(b"/")[0].decode("utf-8", "replace") for record in reader)
        found.append(Summary(reader.server, reader.header, records, reader.size_bytes, reader.sha256, reader.start))
    return found


def choose_backup(backups: Sequence[Summary], server: BackedUpServer) -> Summary:
    """The backup of a server. Raises BadBackup: the file has none."""
    for summary in backups:
        if summary.server is server:
            return summary
    names = ", ".join(summary.server.name for summary in backups)
    raise BadBackup(f"the file has no backup of {server.title}, but of: {names} (--of)")
