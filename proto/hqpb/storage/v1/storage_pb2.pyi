from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SpecRecord(_message.Message):
    __slots__ = ("write_id", "request_id", "meta", "spec", "call_id")
    WRITE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    META_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    write_id: int
    request_id: str
    meta: bytes
    spec: bytes
    call_id: str
    def __init__(self, write_id: _Optional[int] = ..., request_id: _Optional[str] = ..., meta: _Optional[bytes] = ..., spec: _Optional[bytes] = ..., call_id: _Optional[str] = ...) -> None: ...

class StatusRecord(_message.Message):
    __slots__ = ("write_id", "status", "revision", "uid", "agent")
    WRITE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    write_id: int
    status: bytes
    revision: _containers.RepeatedCompositeFieldContainer[RevisionMark]
    uid: int
    agent: AgentSilence
    def __init__(self, write_id: _Optional[int] = ..., status: _Optional[bytes] = ..., revision: _Optional[_Iterable[_Union[RevisionMark, _Mapping]]] = ..., uid: _Optional[int] = ..., agent: _Optional[_Union[AgentSilence, _Mapping]] = ...) -> None: ...

class AgentSilence(_message.Message):
    __slots__ = ("condition", "judged")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    JUDGED_FIELD_NUMBER: _ClassVar[int]
    condition: bytes
    judged: _containers.RepeatedCompositeFieldContainer[JudgedReport]
    def __init__(self, condition: _Optional[bytes] = ..., judged: _Optional[_Iterable[_Union[JudgedReport, _Mapping]]] = ...) -> None: ...

class JudgedReport(_message.Message):
    __slots__ = ("incarnation", "sequence")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    sequence: int
    def __init__(self, incarnation: _Optional[int] = ..., sequence: _Optional[int] = ...) -> None: ...

class RevisionMark(_message.Message):
    __slots__ = ("id", "ready", "heard_unix_ms", "incarnation", "sequence", "digest", "heard_by", "expired", "report_interval_ms", "timeout_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    HEARD_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    HEARD_BY_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    REPORT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    ready: bool
    heard_unix_ms: int
    incarnation: int
    sequence: int
    digest: int
    heard_by: str
    expired: bool
    report_interval_ms: int
    timeout_ms: int
    def __init__(self, id: _Optional[str] = ..., ready: _Optional[bool] = ..., heard_unix_ms: _Optional[int] = ..., incarnation: _Optional[int] = ..., sequence: _Optional[int] = ..., digest: _Optional[int] = ..., heard_by: _Optional[str] = ..., expired: _Optional[bool] = ..., report_interval_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class SecretsRecord(_message.Message):
    __slots__ = ("write_id", "revision")
    WRITE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    write_id: int
    revision: _containers.RepeatedCompositeFieldContainer[RevisionSecrets]
    def __init__(self, write_id: _Optional[int] = ..., revision: _Optional[_Iterable[_Union[RevisionSecrets, _Mapping]]] = ...) -> None: ...

class RevisionSecrets(_message.Message):
    __slots__ = ("id", "descriptor")
    ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    descriptor: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, id: _Optional[str] = ..., descriptor: _Optional[_Iterable[bytes]] = ...) -> None: ...

class BeatBatch(_message.Message):
    __slots__ = ("uid", "status_version", "position", "unix_ms", "batch_id")
    UID_FIELD_NUMBER: _ClassVar[int]
    STATUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    uid: _containers.RepeatedScalarFieldContainer[int]
    status_version: _containers.RepeatedScalarFieldContainer[int]
    position: _containers.RepeatedScalarFieldContainer[int]
    unix_ms: int
    batch_id: int
    def __init__(self, uid: _Optional[_Iterable[int]] = ..., status_version: _Optional[_Iterable[int]] = ..., position: _Optional[_Iterable[int]] = ..., unix_ms: _Optional[int] = ..., batch_id: _Optional[int] = ...) -> None: ...

class HearingRecord(_message.Message):
    __slots__ = ("revision", "node", "many", "unix_ms")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MANY_FIELD_NUMBER: _ClassVar[int]
    UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    revision: _containers.RepeatedCompositeFieldContainer[RefusedRevision]
    node: _containers.RepeatedScalarFieldContainer[str]
    many: bool
    unix_ms: int
    def __init__(self, revision: _Optional[_Iterable[_Union[RefusedRevision, _Mapping]]] = ..., node: _Optional[_Iterable[str]] = ..., many: _Optional[bool] = ..., unix_ms: _Optional[int] = ...) -> None: ...

class RefusedRevision(_message.Message):
    __slots__ = ("uid", "id")
    UID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    uid: int
    id: str
    def __init__(self, uid: _Optional[int] = ..., id: _Optional[str] = ...) -> None: ...

class SilenceRecord(_message.Message):
    __slots__ = ("epoch", "at", "revision", "uid", "of", "heard_ms", "refused_ms")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    HEARD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_MS_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    at: int
    revision: _containers.RepeatedScalarFieldContainer[str]
    uid: _containers.RepeatedScalarFieldContainer[int]
    of: _containers.RepeatedScalarFieldContainer[int]
    heard_ms: _containers.RepeatedScalarFieldContainer[int]
    refused_ms: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, epoch: _Optional[str] = ..., at: _Optional[int] = ..., revision: _Optional[_Iterable[str]] = ..., uid: _Optional[_Iterable[int]] = ..., of: _Optional[_Iterable[int]] = ..., heard_ms: _Optional[_Iterable[int]] = ..., refused_ms: _Optional[_Iterable[int]] = ...) -> None: ...

class PresenceRecord(_message.Message):
    __slots__ = ("epoch", "presence_ms", "replica", "is_holding", "hold_left_ms", "hold_renewed_in_ms", "door_used_ms")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_MS_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    IS_HOLDING_FIELD_NUMBER: _ClassVar[int]
    HOLD_LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    HOLD_RENEWED_IN_MS_FIELD_NUMBER: _ClassVar[int]
    DOOR_USED_MS_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    presence_ms: int
    replica: str
    is_holding: bool
    hold_left_ms: int
    hold_renewed_in_ms: int
    door_used_ms: int
    def __init__(self, epoch: _Optional[str] = ..., presence_ms: _Optional[int] = ..., replica: _Optional[str] = ..., is_holding: _Optional[bool] = ..., hold_left_ms: _Optional[int] = ..., hold_renewed_in_ms: _Optional[int] = ..., door_used_ms: _Optional[int] = ...) -> None: ...

class EpochRecord(_message.Message):
    __slots__ = ("epoch", "predecessor", "instances_before", "ready_before", "restored")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREDECESSOR_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    READY_BEFORE_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    predecessor: _containers.RepeatedScalarFieldContainer[str]
    instances_before: int
    ready_before: int
    restored: bool
    def __init__(self, epoch: _Optional[str] = ..., predecessor: _Optional[_Iterable[str]] = ..., instances_before: _Optional[int] = ..., ready_before: _Optional[int] = ..., restored: _Optional[bool] = ...) -> None: ...

class EpochConfirmation(_message.Message):
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

class GuardOrder(_message.Message):
    __slots__ = ("kind", "by", "reason", "since_unix_ms", "duration_ms")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    kind: int
    by: str
    reason: str
    since_unix_ms: int
    duration_ms: int
    def __init__(self, kind: _Optional[int] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., since_unix_ms: _Optional[int] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class NodeSuspension(_message.Message):
    __slots__ = ("by", "reason", "since_unix_ms", "duration_ms")
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    by: str
    reason: str
    since_unix_ms: int
    duration_ms: int
    def __init__(self, by: _Optional[str] = ..., reason: _Optional[str] = ..., since_unix_ms: _Optional[int] = ..., duration_ms: _Optional[int] = ...) -> None: ...
