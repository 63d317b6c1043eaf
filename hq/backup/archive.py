"""The file: BackupItems (storage/v1/backup.proto), each after its length; a footer proves that nothing is missing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from google.protobuf.message import DecodeError

from hq.memory.frames import varint
from hqpb.storage.v1 import backup_pb2

FORMAT: Final = 1
_LARGEST_ITEM: Final = 64 << 20


class BadBackup(Exception):
    """The file is not a complete backup: use another one."""


class Summary(NamedTuple):
    """What a backup holds, by kind of key, and its checksum."""

    header: backup_pb2.BackupHeader
    records: Counter[str]
    size_bytes: int
    sha256: bytes


class Writer:
    """Writes a backup, item by item."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._sum = file, hashlib.sha256()
        self.records = self.size_bytes = 0

    def header(self, header: backup_pb2.BackupHeader) -> None:
        """The beginning."""
        self._put(backup_pb2.BackupItem(header=header))

    def record(self, key: bytes, value: bytes) -> None:
        """One key, without the prefix."""
        self._put(backup_pb2.BackupItem(record=backup_pb2.BackupRecord(key=key, value=value)))
        self.records += 1

    def footer(self) -> bytes:
        """The end; return the checksum."""
        sha256 = self._sum.digest()
        self._put(backup_pb2.BackupItem(footer=backup_pb2.BackupFooter(records=self.records, sha256=sha256)))
        return sha256

    def _put(self, item: backup_pb2.BackupItem) -> None:
        body = item.SerializeToString()
        data = varint(len(body)) + body
        self._sum.update(data)
        self.size_bytes += len(data)
        self._file.write(data)


class Reader:
    """Reads a backup and checks it on the way: iterating to the end proves that it is complete.

    Attributes:
        header: read at once.
        sha256: known at the end.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Raises BadBackup."""
        self._file, self._sum, self._records = file, hashlib.sha256(), 0
        self.size_bytes = 0
        self.sha256 = b""
        first = self._item()
        if first.WhichOneof("item") != "header":
            raise BadBackup("not a backup of HQ")
        self.header = first.header
        if self.header.format != FORMAT:
            raise BadBackup(f"the backup has format {self.header.format}, this version of HQ reads format {FORMAT}")

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
        if self._file.read(1):
            raise BadBackup("the backup has data after its end: it was changed")
        self.sha256 = sha256

    def _item(self) -> backup_pb2.BackupItem:
        head, size = self._length()
        body = self._file.read(size)
        if len(body) < size:
            raise self._cut()
        self._sum.update(head + body)
        self.size_bytes += len(head) + size
        try:
            return backup_pb2.BackupItem.FromString(body)
        except DecodeError:
            raise self._damaged() from None

    def _length(self) -> tuple[bytes, int]:
        """The varint before an item, as bytes and as a number."""
        head = b""
        while not head or head[-1] & 0x80:
            byte = self._file.read(1)
            if not byte:
                raise self._cut()
            head += byte
            if len(head) > 5:
                raise self._damaged()
        size = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(head))
        if size > _LARGEST_ITEM:
            raise self._damaged()
        return head, size

    def _cut(self) -> BadBackup:
        if not self.size_bytes:
            return BadBackup("not a backup of HQ")
        return BadBackup(f"the backup is truncated after {self._records} records: it was not written completely")

    def _damaged(self) -> BadBackup:
        if not self.size_bytes:
            return BadBackup("not a backup of HQ")
        return BadBackup(f"the backup is damaged after {self._records} records")


def verified(file: BinaryIO) -> Summary:
    """Read a backup to its end. Raises BadBackup."""
    reader = Reader(file)
    records = Counter(record.key.partition(b"/")[0].decode("utf-8", "replace") for record in reader)
    return Summary(reader.header, records, reader.size_bytes, reader.sha256)
