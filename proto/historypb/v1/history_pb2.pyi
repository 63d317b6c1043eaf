import datetime

from cmspb.v1 import record_pb2 as _record_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from hqpb.v1 import instance_pb2 as _instance_pb2
from wallepb.v1 import project_pb2 as _project_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_KIND_UNSPECIFIED: _ClassVar[EventKind]
    EVENT_KIND_CREATED: _ClassVar[EventKind]
    EVENT_KIND_DELETED: _ClassVar[EventKind]
    EVENT_KIND_READY: _ClassVar[EventKind]
    EVENT_KIND_NOT_READY: _ClassVar[EventKind]
    EVENT_KIND_CHANGED: _ClassVar[EventKind]
    EVENT_KIND_GAP: _ClassVar[EventKind]
EVENT_KIND_UNSPECIFIED: EventKind
EVENT_KIND_CREATED: EventKind
EVENT_KIND_DELETED: EventKind
EVENT_KIND_READY: EventKind
EVENT_KIND_NOT_READY: EventKind
EVENT_KIND_CHANGED: EventKind
EVENT_KIND_GAP: EventKind

class Event(_message.Message):
    __slots__ = ("time", "kind", "cluster", "instance_id", "service_id", "node", "version", "reason", "message", "until")
    TIME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    kind: EventKind
    cluster: str
    instance_id: str
    service_id: str
    node: str
    version: int
    reason: str
    message: str
    until: _timestamp_pb2.Timestamp
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[_Union[EventKind, str]] = ..., cluster: _Optional[str] = ..., instance_id: _Optional[str] = ..., service_id: _Optional[str] = ..., node: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("service_id", "instance_id", "node", "cluster", "since", "until", "page_size", "page_token")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    instance_id: str
    node: str
    cluster: str
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, service_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., node: _Optional[str] = ..., cluster: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("event", "next_page_token")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    event: _containers.RepeatedCompositeFieldContainer[Event]
    next_page_token: str
    def __init__(self, event: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class FindInstancesAtRequest(_message.Message):
    __slots__ = ("time", "service_id", "instance_id", "node", "cluster", "page_size", "page_token")
    TIME_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    service_id: str
    instance_id: str
    node: str
    cluster: str
    page_size: int
    page_token: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., service_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., node: _Optional[str] = ..., cluster: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class FindInstancesAtResponse(_message.Message):
    __slots__ = ("instance", "next_page_token", "age", "gap")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    instance: _containers.RepeatedCompositeFieldContainer[_instance_pb2.Instance]
    next_page_token: str
    age: _duration_pb2.Duration
    gap: str
    def __init__(self, instance: _Optional[_Iterable[_Union[_instance_pb2.Instance, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., gap: _Optional[str] = ...) -> None: ...

class CountInstancesOverTimeRequest(_message.Message):
    __slots__ = ("service_id", "since", "until", "step", "cluster", "instance_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    step: _duration_pb2.Duration
    cluster: str
    instance_id: str
    def __init__(self, service_id: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., step: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., cluster: _Optional[str] = ..., instance_id: _Optional[str] = ...) -> None: ...

class Count(_message.Message):
    __slots__ = ("time", "instances", "ready", "in_gap", "least_ready")
    TIME_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    IN_GAP_FIELD_NUMBER: _ClassVar[int]
    LEAST_READY_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    instances: int
    ready: int
    in_gap: bool
    least_ready: int
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., instances: _Optional[int] = ..., ready: _Optional[int] = ..., in_gap: _Optional[bool] = ..., least_ready: _Optional[int] = ...) -> None: ...

class CountInstancesOverTimeResponse(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: _containers.RepeatedCompositeFieldContainer[Count]
    def __init__(self, count: _Optional[_Iterable[_Union[Count, _Mapping]]] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("time", "server", "subject", "event", "by", "message", "based_on", "service_id", "node", "gap_until")
    TIME_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BASED_ON_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    GAP_UNTIL_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    server: str
    subject: str
    event: str
    by: str
    message: str
    based_on: _containers.RepeatedScalarFieldContainer[str]
    service_id: _containers.RepeatedScalarFieldContainer[str]
    node: _containers.RepeatedScalarFieldContainer[str]
    gap_until: _timestamp_pb2.Timestamp
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., server: _Optional[str] = ..., subject: _Optional[str] = ..., event: _Optional[str] = ..., by: _Optional[str] = ..., message: _Optional[str] = ..., based_on: _Optional[_Iterable[str]] = ..., service_id: _Optional[_Iterable[str]] = ..., node: _Optional[_Iterable[str]] = ..., gap_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDecisionsRequest(_message.Message):
    __slots__ = ("server", "subject", "service_id", "node", "since", "until", "page_size", "page_token")
    SERVER_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    server: str
    subject: str
    service_id: str
    node: str
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, server: _Optional[str] = ..., subject: _Optional[str] = ..., service_id: _Optional[str] = ..., node: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDecisionsResponse(_message.Message):
    __slots__ = ("decision", "next_page_token")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    decision: _containers.RepeatedCompositeFieldContainer[Decision]
    next_page_token: str
    def __init__(self, decision: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReadLedgerRequest(_message.Message):
    __slots__ = ("since", "until")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    def __init__(self, since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReadLedgerResponse(_message.Message):
    __slots__ = ("time", "entry")
    TIME_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    entry: _containers.RepeatedCompositeFieldContainer[_record_pb2.LedgerEntry]
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., entry: _Optional[_Iterable[_Union[_record_pb2.LedgerEntry, _Mapping]]] = ...) -> None: ...

class ReadFusesRequest(_message.Message):
    __slots__ = ("since", "until")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    def __init__(self, since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReadFusesResponse(_message.Message):
    __slots__ = ("time", "entry")
    TIME_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    entry: _containers.RepeatedCompositeFieldContainer[_project_pb2.FuseEntry]
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., entry: _Optional[_Iterable[_Union[_project_pb2.FuseEntry, _Mapping]]] = ...) -> None: ...
