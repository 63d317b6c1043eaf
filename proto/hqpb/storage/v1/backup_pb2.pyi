from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BackupItem(_message.Message):
    __slots__ = ("header", "record", "footer")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    FOOTER_FIELD_NUMBER: _ClassVar[int]
    header: BackupHeader
    record: BackupRecord
    footer: BackupFooter
    def __init__(self, header: _Optional[_Union[BackupHeader, _Mapping]] = ..., record: _Optional[_Union[BackupRecord, _Mapping]] = ..., footer: _Optional[_Union[BackupFooter, _Mapping]] = ...) -> None: ...

class BackupHeader(_message.Message):
    __slots__ = ("format", "revision", "epoch", "prefix", "unix_ms", "server", "following")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    FOLLOWING_FIELD_NUMBER: _ClassVar[int]
    format: int
    revision: int
    epoch: bytes
    prefix: str
    unix_ms: int
    server: str
    following: int
    def __init__(self, format: _Optional[int] = ..., revision: _Optional[int] = ..., epoch: _Optional[bytes] = ..., prefix: _Optional[str] = ..., unix_ms: _Optional[int] = ..., server: _Optional[str] = ..., following: _Optional[int] = ...) -> None: ...

class BackupRecord(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class BackupFooter(_message.Message):
    __slots__ = ("records", "sha256")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    records: int
    sha256: bytes
    def __init__(self, records: _Optional[int] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class RestoreRecord(_message.Message):
    __slots__ = ("sha256",)
    SHA256_FIELD_NUMBER: _ClassVar[int]
    sha256: bytes
    def __init__(self, sha256: _Optional[bytes] = ...) -> None: ...
