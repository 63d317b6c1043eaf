import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from hqpb.v1 import instance_pb2 as _instance_pb2
from hqpb.v1 import service_pb2 as _service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetEpochRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetEpochResponse(_message.Message):
    __slots__ = ("state", "source")
    STATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    state: EpochState
    source: _service_pb2.Source
    def __init__(self, state: _Optional[_Union[EpochState, _Mapping]] = ..., source: _Optional[_Union[_service_pb2.Source, _Mapping]] = ...) -> None: ...

class ConfirmEpochRequest(_message.Message):
    __slots__ = ("epoch", "reason", "by")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    reason: str
    by: str
    def __init__(self, epoch: _Optional[str] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class ConfirmEpochResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: EpochState
    def __init__(self, state: _Optional[_Union[EpochState, _Mapping]] = ...) -> None: ...

class EpochState(_message.Message):
    __slots__ = ("epoch", "trust", "doubt", "instances", "ready", "instances_before", "ready_before", "unknown_reported", "by", "reason", "time")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    DOUBT_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    READY_BEFORE_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_REPORTED_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    trust: _service_pb2.EpochTrust
    doubt: str
    instances: int
    ready: int
    instances_before: int
    ready_before: int
    unknown_reported: int
    by: str
    reason: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, epoch: _Optional[str] = ..., trust: _Optional[_Union[_service_pb2.EpochTrust, str]] = ..., doubt: _Optional[str] = ..., instances: _Optional[int] = ..., ready: _Optional[int] = ..., instances_before: _Optional[int] = ..., ready_before: _Optional[int] = ..., unknown_reported: _Optional[int] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetGuardRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetGuardResponse(_message.Message):
    __slots__ = ("guard", "source")
    GUARD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    guard: _service_pb2.GuardState
    source: _service_pb2.Source
    def __init__(self, guard: _Optional[_Union[_service_pb2.GuardState, _Mapping]] = ..., source: _Optional[_Union[_service_pb2.Source, _Mapping]] = ...) -> None: ...

class ReleaseGuardRequest(_message.Message):
    __slots__ = ("duration", "reason", "by")
    DURATION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    duration: _duration_pb2.Duration
    reason: str
    by: str
    def __init__(self, duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class ReleaseGuardResponse(_message.Message):
    __slots__ = ("guard",)
    GUARD_FIELD_NUMBER: _ClassVar[int]
    guard: _service_pb2.GuardState
    def __init__(self, guard: _Optional[_Union[_service_pb2.GuardState, _Mapping]] = ...) -> None: ...

class ForceGuardRequest(_message.Message):
    __slots__ = ("duration", "reason", "by")
    DURATION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    duration: _duration_pb2.Duration
    reason: str
    by: str
    def __init__(self, duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class ForceGuardResponse(_message.Message):
    __slots__ = ("guard",)
    GUARD_FIELD_NUMBER: _ClassVar[int]
    guard: _service_pb2.GuardState
    def __init__(self, guard: _Optional[_Union[_service_pb2.GuardState, _Mapping]] = ...) -> None: ...

class ListReplicasRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListReplicasResponse(_message.Message):
    __slots__ = ("replicas", "members", "source", "store_bytes", "max_store_bytes", "proof")
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    STORE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_STORE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaInfo]
    members: _containers.RepeatedCompositeFieldContainer[StoreMember]
    source: _service_pb2.Source
    store_bytes: int
    max_store_bytes: int
    proof: MemoryProof
    def __init__(self, replicas: _Optional[_Iterable[_Union[ReplicaInfo, _Mapping]]] = ..., members: _Optional[_Iterable[_Union[StoreMember, _Mapping]]] = ..., source: _Optional[_Union[_service_pb2.Source, _Mapping]] = ..., store_bytes: _Optional[int] = ..., max_store_bytes: _Optional[int] = ..., proof: _Optional[_Union[MemoryProof, _Mapping]] = ...) -> None: ...

class ReplicaInfo(_message.Message):
    __slots__ = ("replica", "silent_for", "self")
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    SILENT_FOR_FIELD_NUMBER: _ClassVar[int]
    SELF_FIELD_NUMBER: _ClassVar[int]
    replica: str
    silent_for: _duration_pb2.Duration
    self: bool
    def __init__(self_, replica: _Optional[str] = ..., silent_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., self: _Optional[bool] = ...) -> None: ...

class StoreMember(_message.Message):
    __slots__ = ("endpoint", "version", "leader", "db_size_bytes", "db_size_in_use_bytes", "error", "full", "quota_bytes", "advice", "learner")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    DB_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DB_SIZE_IN_USE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    QUOTA_BYTES_FIELD_NUMBER: _ClassVar[int]
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    version: str
    leader: bool
    db_size_bytes: int
    db_size_in_use_bytes: int
    error: str
    full: bool
    quota_bytes: int
    advice: str
    learner: bool
    def __init__(self, endpoint: _Optional[str] = ..., version: _Optional[str] = ..., leader: _Optional[bool] = ..., db_size_bytes: _Optional[int] = ..., db_size_in_use_bytes: _Optional[int] = ..., error: _Optional[str] = ..., full: _Optional[bool] = ..., quota_bytes: _Optional[int] = ..., advice: _Optional[str] = ..., learner: _Optional[bool] = ...) -> None: ...

class MemoryProof(_message.Message):
    __slots__ = ("mended", "counted_ago", "compared_ago", "foreign_compaction_ago")
    MENDED_FIELD_NUMBER: _ClassVar[int]
    COUNTED_AGO_FIELD_NUMBER: _ClassVar[int]
    COMPARED_AGO_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_COMPACTION_AGO_FIELD_NUMBER: _ClassVar[int]
    mended: int
    counted_ago: _duration_pb2.Duration
    compared_ago: _duration_pb2.Duration
    foreign_compaction_ago: _duration_pb2.Duration
    def __init__(self, mended: _Optional[int] = ..., counted_ago: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., compared_ago: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., foreign_compaction_ago: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ListQuarantineRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQuarantineResponse(_message.Message):
    __slots__ = ("records", "source")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[QuarantinedRecord]
    source: _service_pb2.Source
    def __init__(self, records: _Optional[_Iterable[_Union[QuarantinedRecord, _Mapping]]] = ..., source: _Optional[_Union[_service_pb2.Source, _Mapping]] = ...) -> None: ...

class QuarantinedRecord(_message.Message):
    __slots__ = ("key", "version", "error", "served_from_older")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SERVED_FROM_OLDER_FIELD_NUMBER: _ClassVar[int]
    key: str
    version: int
    error: str
    served_from_older: bool
    def __init__(self, key: _Optional[str] = ..., version: _Optional[int] = ..., error: _Optional[str] = ..., served_from_older: _Optional[bool] = ...) -> None: ...

class ListTransitionsRequest(_message.Message):
    __slots__ = ("instance_id", "page_size")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    page_size: int
    def __init__(self, instance_id: _Optional[str] = ..., page_size: _Optional[int] = ...) -> None: ...

class ListTransitionsResponse(_message.Message):
    __slots__ = ("transitions", "source")
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    transitions: _containers.RepeatedCompositeFieldContainer[Transition]
    source: _service_pb2.Source
    def __init__(self, transitions: _Optional[_Iterable[_Union[Transition, _Mapping]]] = ..., source: _Optional[_Union[_service_pb2.Source, _Mapping]] = ...) -> None: ...

class Transition(_message.Message):
    __slots__ = ("instance_id", "revision_id", "node_name", "ready", "version", "time", "condition")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    revision_id: str
    node_name: str
    ready: bool
    version: int
    time: _timestamp_pb2.Timestamp
    condition: _instance_pb2.Condition
    def __init__(self, instance_id: _Optional[str] = ..., revision_id: _Optional[str] = ..., node_name: _Optional[str] = ..., ready: _Optional[bool] = ..., version: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., condition: _Optional[_Union[_instance_pb2.Condition, _Mapping]] = ...) -> None: ...

class SuspendNodeRequest(_message.Message):
    __slots__ = ("node_name", "duration", "reason", "by")
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    node_name: str
    duration: _duration_pb2.Duration
    reason: str
    by: str
    def __init__(self, node_name: _Optional[str] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class SuspendNodeResponse(_message.Message):
    __slots__ = ("suspension",)
    SUSPENSION_FIELD_NUMBER: _ClassVar[int]
    suspension: Suspension
    def __init__(self, suspension: _Optional[_Union[Suspension, _Mapping]] = ...) -> None: ...

class ResumeNodeRequest(_message.Message):
    __slots__ = ("node_name",)
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    node_name: str
    def __init__(self, node_name: _Optional[str] = ...) -> None: ...

class ResumeNodeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSuspensionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSuspensionsResponse(_message.Message):
    __slots__ = ("suspensions", "source")
    SUSPENSIONS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    suspensions: _containers.RepeatedCompositeFieldContainer[Suspension]
    source: _service_pb2.Source
    def __init__(self, suspensions: _Optional[_Iterable[_Union[Suspension, _Mapping]]] = ..., source: _Optional[_Union[_service_pb2.Source, _Mapping]] = ...) -> None: ...

class Suspension(_message.Message):
    __slots__ = ("node_name", "until", "reason", "by", "since")
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    node_name: str
    until: _timestamp_pb2.Timestamp
    reason: str
    by: str
    since: _timestamp_pb2.Timestamp
    def __init__(self, node_name: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
