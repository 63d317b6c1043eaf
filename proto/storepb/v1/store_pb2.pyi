from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Word(_message.Message):
    __slots__ = ("word",)
    WORD_FIELD_NUMBER: _ClassVar[int]
    word: int
    def __init__(self, word: _Optional[int] = ...) -> None: ...

class EpochRecord(_message.Message):
    __slots__ = ("epoch", "predecessor")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREDECESSOR_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    predecessor: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, epoch: _Optional[str] = ..., predecessor: _Optional[_Iterable[str]] = ...) -> None: ...

class FormatRecord(_message.Message):
    __slots__ = ("format", "oldest_reader")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_READER_FIELD_NUMBER: _ClassVar[int]
    format: int
    oldest_reader: int
    def __init__(self, format: _Optional[int] = ..., oldest_reader: _Optional[int] = ...) -> None: ...

class CompactionRecord(_message.Message):
    __slots__ = ("revision", "process")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    revision: int
    process: str
    def __init__(self, revision: _Optional[int] = ..., process: _Optional[str] = ...) -> None: ...
