from google.protobuf import field_mask_pb2 as _field_mask_pb2
from nannypb.v1 import service_pb2 as _service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_DONE: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]
    OUTCOME_CANCELLED: _ClassVar[Outcome]
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_DONE: Outcome
OUTCOME_FAILED: Outcome
OUTCOME_CANCELLED: Outcome

class ServiceRecord(_message.Message):
    __slots__ = ("info", "snapshot", "head", "paused", "last_active", "rolling_back", "numbered", "generation", "created", "drift", "known", "ailing", "health", "info_version", "chunks")
    class ChunksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    INFO_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    LAST_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    ROLLING_BACK_FIELD_NUMBER: _ClassVar[int]
    NUMBERED_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    AILING_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    INFO_VERSION_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    info: _service_pb2.InfoAttributes
    snapshot: _containers.RepeatedCompositeFieldContainer[TupleRecord]
    head: str
    paused: _service_pb2.Authorship
    last_active: str
    rolling_back: bool
    numbered: int
    generation: int
    created: _service_pb2.Authorship
    drift: _containers.RepeatedScalarFieldContainer[str]
    known: _containers.RepeatedScalarFieldContainer[str]
    ailing: _containers.RepeatedCompositeFieldContainer[InstanceKey]
    health: HealthRecord
    info_version: int
    chunks: _containers.ScalarMap[str, int]
    def __init__(self, info: _Optional[_Union[_service_pb2.InfoAttributes, _Mapping]] = ..., snapshot: _Optional[_Iterable[_Union[TupleRecord, _Mapping]]] = ..., head: _Optional[str] = ..., paused: _Optional[_Union[_service_pb2.Authorship, _Mapping]] = ..., last_active: _Optional[str] = ..., rolling_back: _Optional[bool] = ..., numbered: _Optional[int] = ..., generation: _Optional[int] = ..., created: _Optional[_Union[_service_pb2.Authorship, _Mapping]] = ..., drift: _Optional[_Iterable[str]] = ..., known: _Optional[_Iterable[str]] = ..., ailing: _Optional[_Iterable[_Union[InstanceKey, _Mapping]]] = ..., health: _Optional[_Union[HealthRecord, _Mapping]] = ..., info_version: _Optional[int] = ..., chunks: _Optional[_Mapping[str, int]] = ...) -> None: ...

class HealthRecord(_message.Message):
    __slots__ = ("ready", "wanted", "remark")
    READY_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    REMARK_FIELD_NUMBER: _ClassVar[int]
    ready: int
    wanted: int
    remark: str
    def __init__(self, ready: _Optional[int] = ..., wanted: _Optional[int] = ..., remark: _Optional[str] = ...) -> None: ...

class TupleRecord(_message.Message):
    __slots__ = ("snapshot_id", "current", "since_unix_ms", "target", "target_set", "fill", "overrides", "action", "message", "order", "promoted", "has_served")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TARGET_SET_FIELD_NUMBER: _ClassVar[int]
    FILL_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    PROMOTED_FIELD_NUMBER: _ClassVar[int]
    HAS_SERVED_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    current: _service_pb2.CurrentState
    since_unix_ms: int
    target: _service_pb2.Target
    target_set: _service_pb2.Authorship
    fill: bool
    overrides: int
    action: int
    message: str
    order: _service_pb2.Order
    promoted: int
    has_served: bool
    def __init__(self, snapshot_id: _Optional[str] = ..., current: _Optional[_Union[_service_pb2.CurrentState, str]] = ..., since_unix_ms: _Optional[int] = ..., target: _Optional[_Union[_service_pb2.Target, str]] = ..., target_set: _Optional[_Union[_service_pb2.Authorship, _Mapping]] = ..., fill: _Optional[bool] = ..., overrides: _Optional[int] = ..., action: _Optional[int] = ..., message: _Optional[str] = ..., order: _Optional[_Union[_service_pb2.Order, _Mapping]] = ..., promoted: _Optional[int] = ..., has_served: _Optional[bool] = ...) -> None: ...

class ActionRecord(_message.Message):
    __slots__ = ("number", "since_unix_ms", "message", "batch", "batches_done", "failed", "at_most", "cms_task", "granted", "fell", "ailing", "begun", "proven", "trusted", "stalled_ms", "calm_ms", "step", "steps_over", "step_ms", "check_result", "check")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    BATCHES_DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    CMS_TASK_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    FELL_FIELD_NUMBER: _ClassVar[int]
    AILING_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    PROVEN_FIELD_NUMBER: _ClassVar[int]
    TRUSTED_FIELD_NUMBER: _ClassVar[int]
    STALLED_MS_FIELD_NUMBER: _ClassVar[int]
    CALM_MS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STEPS_OVER_FIELD_NUMBER: _ClassVar[int]
    STEP_MS_FIELD_NUMBER: _ClassVar[int]
    CHECK_RESULT_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    number: int
    since_unix_ms: int
    message: str
    batch: _containers.RepeatedCompositeFieldContainer[InstanceKey]
    batches_done: int
    failed: _containers.RepeatedCompositeFieldContainer[InstanceKey]
    at_most: int
    cms_task: str
    granted: bool
    fell: _containers.RepeatedCompositeFieldContainer[InstanceKey]
    ailing: _containers.RepeatedCompositeFieldContainer[InstanceKey]
    begun: bool
    proven: bool
    trusted: bool
    stalled_ms: int
    calm_ms: int
    step: _containers.RepeatedCompositeFieldContainer[_service_pb2.RolloutStep]
    steps_over: int
    step_ms: int
    check_result: str
    check: _containers.RepeatedCompositeFieldContainer[_service_pb2.RolloutCheck]
    def __init__(self, number: _Optional[int] = ..., since_unix_ms: _Optional[int] = ..., message: _Optional[str] = ..., batch: _Optional[_Iterable[_Union[InstanceKey, _Mapping]]] = ..., batches_done: _Optional[int] = ..., failed: _Optional[_Iterable[_Union[InstanceKey, _Mapping]]] = ..., at_most: _Optional[int] = ..., cms_task: _Optional[str] = ..., granted: _Optional[bool] = ..., fell: _Optional[_Iterable[_Union[InstanceKey, _Mapping]]] = ..., ailing: _Optional[_Iterable[_Union[InstanceKey, _Mapping]]] = ..., begun: _Optional[bool] = ..., proven: _Optional[bool] = ..., trusted: _Optional[bool] = ..., stalled_ms: _Optional[int] = ..., calm_ms: _Optional[int] = ..., step: _Optional[_Iterable[_Union[_service_pb2.RolloutStep, _Mapping]]] = ..., steps_over: _Optional[int] = ..., step_ms: _Optional[int] = ..., check_result: _Optional[str] = ..., check: _Optional[_Iterable[_Union[_service_pb2.RolloutCheck, _Mapping]]] = ...) -> None: ...

class RolloutRecord(_message.Message):
    __slots__ = ("number", "since_unix_ms", "end_unix_ms", "batch", "judged", "step", "aborted")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    END_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    JUDGED_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    ABORTED_FIELD_NUMBER: _ClassVar[int]
    number: int
    since_unix_ms: int
    end_unix_ms: int
    batch: _containers.RepeatedCompositeFieldContainer[_service_pb2.RolloutBatch]
    judged: _containers.RepeatedCompositeFieldContainer[_service_pb2.JudgedInstance]
    step: _containers.RepeatedCompositeFieldContainer[_service_pb2.RolloutStepRecord]
    aborted: _service_pb2.Authorship
    def __init__(self, number: _Optional[int] = ..., since_unix_ms: _Optional[int] = ..., end_unix_ms: _Optional[int] = ..., batch: _Optional[_Iterable[_Union[_service_pb2.RolloutBatch, _Mapping]]] = ..., judged: _Optional[_Iterable[_Union[_service_pb2.JudgedInstance, _Mapping]]] = ..., step: _Optional[_Iterable[_Union[_service_pb2.RolloutStepRecord, _Mapping]]] = ..., aborted: _Optional[_Union[_service_pb2.Authorship, _Mapping]] = ...) -> None: ...

class InstanceKey(_message.Message):
    __slots__ = ("location", "id")
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    location: str
    id: str
    def __init__(self, location: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class SnapshotRecord(_message.Message):
    __slots__ = ("snapshot", "chunks")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    snapshot: _service_pb2.Snapshot
    chunks: int
    def __init__(self, snapshot: _Optional[_Union[_service_pb2.Snapshot, _Mapping]] = ..., chunks: _Optional[int] = ...) -> None: ...

class ChunkRecord(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class InstanceTargetRecord(_message.Message):
    __slots__ = ("snapshot_id", "target", "set", "overrides", "cms_task")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    CMS_TASK_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    target: _service_pb2.Target
    set: _service_pb2.Authorship
    overrides: int
    cms_task: str
    def __init__(self, snapshot_id: _Optional[str] = ..., target: _Optional[_Union[_service_pb2.Target, str]] = ..., set: _Optional[_Union[_service_pb2.Authorship, _Mapping]] = ..., overrides: _Optional[int] = ..., cms_task: _Optional[str] = ...) -> None: ...

class HistoryRecord(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: _containers.RepeatedCompositeFieldContainer[_service_pb2.HistoryEntry]
    def __init__(self, entry: _Optional[_Iterable[_Union[_service_pb2.HistoryEntry, _Mapping]]] = ...) -> None: ...

class ServiceEvent(_message.Message):
    __slots__ = ("by", "created", "updated", "deleted", "snapshot", "target", "instance", "paused", "stopped", "ended", "adopted", "promoted", "aborted", "restarted", "generation", "updated_fields", "info_version", "access")
    BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ADOPTED_FIELD_NUMBER: _ClassVar[int]
    PROMOTED_FIELD_NUMBER: _ClassVar[int]
    ABORTED_FIELD_NUMBER: _ClassVar[int]
    RESTARTED_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELDS_FIELD_NUMBER: _ClassVar[int]
    INFO_VERSION_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    by: _service_pb2.Authorship
    created: _service_pb2.InfoAttributes
    updated: _service_pb2.InfoAttributes
    deleted: bool
    snapshot: SnapshotRecord
    target: TargetOrder
    instance: InstanceOrder
    paused: bool
    stopped: bool
    ended: ActionEnd
    adopted: Adoption
    promoted: StepOrder
    aborted: StepOrder
    restarted: Restart
    generation: int
    updated_fields: _field_mask_pb2.FieldMask
    info_version: int
    access: str
    def __init__(self, by: _Optional[_Union[_service_pb2.Authorship, _Mapping]] = ..., created: _Optional[_Union[_service_pb2.InfoAttributes, _Mapping]] = ..., updated: _Optional[_Union[_service_pb2.InfoAttributes, _Mapping]] = ..., deleted: _Optional[bool] = ..., snapshot: _Optional[_Union[SnapshotRecord, _Mapping]] = ..., target: _Optional[_Union[TargetOrder, _Mapping]] = ..., instance: _Optional[_Union[InstanceOrder, _Mapping]] = ..., paused: _Optional[bool] = ..., stopped: _Optional[bool] = ..., ended: _Optional[_Union[ActionEnd, _Mapping]] = ..., adopted: _Optional[_Union[Adoption, _Mapping]] = ..., promoted: _Optional[_Union[StepOrder, _Mapping]] = ..., aborted: _Optional[_Union[StepOrder, _Mapping]] = ..., restarted: _Optional[_Union[Restart, _Mapping]] = ..., generation: _Optional[int] = ..., updated_fields: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., info_version: _Optional[int] = ..., access: _Optional[str] = ...) -> None: ...

class Adoption(_message.Message):
    __slots__ = ("info", "snapshot")
    INFO_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    info: _service_pb2.InfoAttributes
    snapshot: SnapshotRecord
    def __init__(self, info: _Optional[_Union[_service_pb2.InfoAttributes, _Mapping]] = ..., snapshot: _Optional[_Union[SnapshotRecord, _Mapping]] = ...) -> None: ...

class TargetOrder(_message.Message):
    __slots__ = ("snapshot_id", "target", "fill", "order_id", "skip_steps", "roll_back")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    FILL_FIELD_NUMBER: _ClassVar[int]
    ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    SKIP_STEPS_FIELD_NUMBER: _ClassVar[int]
    ROLL_BACK_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    target: _service_pb2.Target
    fill: bool
    order_id: str
    skip_steps: bool
    roll_back: bool
    def __init__(self, snapshot_id: _Optional[str] = ..., target: _Optional[_Union[_service_pb2.Target, str]] = ..., fill: _Optional[bool] = ..., order_id: _Optional[str] = ..., skip_steps: _Optional[bool] = ..., roll_back: _Optional[bool] = ...) -> None: ...

class Restart(_message.Message):
    __slots__ = ("of", "snapshot", "order_id")
    OF_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    of: str
    snapshot: SnapshotRecord
    order_id: str
    def __init__(self, of: _Optional[str] = ..., snapshot: _Optional[_Union[SnapshotRecord, _Mapping]] = ..., order_id: _Optional[str] = ...) -> None: ...

class StepOrder(_message.Message):
    __slots__ = ("order_id", "number")
    ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    order_id: str
    number: int
    def __init__(self, order_id: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class InstanceOrder(_message.Message):
    __slots__ = ("snapshot_id", "instance", "target")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    instance: InstanceKey
    target: _service_pb2.Target
    def __init__(self, snapshot_id: _Optional[str] = ..., instance: _Optional[_Union[InstanceKey, _Mapping]] = ..., target: _Optional[_Union[_service_pb2.Target, str]] = ...) -> None: ...

class ActionEnd(_message.Message):
    __slots__ = ("snapshot_id", "number", "outcome", "message", "ailing", "health")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    AILING_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    number: int
    outcome: Outcome
    message: str
    ailing: _containers.RepeatedCompositeFieldContainer[InstanceKey]
    health: HealthRecord
    def __init__(self, snapshot_id: _Optional[str] = ..., number: _Optional[int] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., message: _Optional[str] = ..., ailing: _Optional[_Iterable[_Union[InstanceKey, _Mapping]]] = ..., health: _Optional[_Union[HealthRecord, _Mapping]] = ...) -> None: ...
