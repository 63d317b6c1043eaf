from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Acting(_message.Message):
    __slots__ = ("word", "process", "since_unix_ms", "refreshes")
    WORD_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    REFRESHES_FIELD_NUMBER: _ClassVar[int]
    word: int
    process: str
    since_unix_ms: int
    refreshes: int
    def __init__(self, word: _Optional[int] = ..., process: _Optional[str] = ..., since_unix_ms: _Optional[int] = ..., refreshes: _Optional[int] = ...) -> None: ...

class Inbox(_message.Message):
    __slots__ = ("last", "pending", "answered")
    LAST_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    last: int
    pending: _containers.RepeatedCompositeFieldContainer[Event]
    answered: _containers.RepeatedCompositeFieldContainer[Answer]
    def __init__(self, last: _Optional[int] = ..., pending: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., answered: _Optional[_Iterable[_Union[Answer, _Mapping]]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("sequence", "request_id", "content", "epoch", "by", "unix_ms")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    request_id: str
    content: bytes
    epoch: str
    by: str
    unix_ms: int
    def __init__(self, sequence: _Optional[int] = ..., request_id: _Optional[str] = ..., content: _Optional[bytes] = ..., epoch: _Optional[str] = ..., by: _Optional[str] = ..., unix_ms: _Optional[int] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("sequence", "request_id", "digest", "refused", "code")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    request_id: str
    digest: bytes
    refused: str
    code: str
    def __init__(self, sequence: _Optional[int] = ..., request_id: _Optional[str] = ..., digest: _Optional[bytes] = ..., refused: _Optional[str] = ..., code: _Optional[str] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("error", "since_unix_ms")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    error: str
    since_unix_ms: int
    def __init__(self, error: _Optional[str] = ..., since_unix_ms: _Optional[int] = ...) -> None: ...

class Freeze(_message.Message):
    __slots__ = ("by", "reason", "since_unix_ms")
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    by: str
    reason: str
    since_unix_ms: int
    def __init__(self, by: _Optional[str] = ..., reason: _Optional[str] = ..., since_unix_ms: _Optional[int] = ...) -> None: ...

class Opening(_message.Message):
    __slots__ = ("epoch", "by", "reason", "since_unix_ms")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    by: str
    reason: str
    since_unix_ms: int
    def __init__(self, epoch: _Optional[str] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., since_unix_ms: _Optional[int] = ...) -> None: ...

class KeptLine(_message.Message):
    __slots__ = ("line",)
    LINE_FIELD_NUMBER: _ClassVar[int]
    line: str
    def __init__(self, line: _Optional[str] = ...) -> None: ...
