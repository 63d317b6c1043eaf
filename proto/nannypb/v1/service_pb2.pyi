import datetime

from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Target(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TARGET_UNSPECIFIED: _ClassVar[Target]
    TARGET_DESTROYED: _ClassVar[Target]
    TARGET_CREATED: _ClassVar[Target]
    TARGET_PREPARED: _ClassVar[Target]
    TARGET_ACTIVE: _ClassVar[Target]

class CurrentState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CURRENT_STATE_UNSPECIFIED: _ClassVar[CurrentState]
    CURRENT_STATE_GENERATING: _ClassVar[CurrentState]
    CURRENT_STATE_PARTIALLY_CREATED: _ClassVar[CurrentState]
    CURRENT_STATE_CREATED: _ClassVar[CurrentState]
    CURRENT_STATE_PREPARING: _ClassVar[CurrentState]
    CURRENT_STATE_PARTIALLY_PREPARED: _ClassVar[CurrentState]
    CURRENT_STATE_PREPARED: _ClassVar[CurrentState]
    CURRENT_STATE_ACTIVATING: _ClassVar[CurrentState]
    CURRENT_STATE_ACTIVE: _ClassVar[CurrentState]
    CURRENT_STATE_BROKEN: _ClassVar[CurrentState]
    CURRENT_STATE_DEACTIVATING: _ClassVar[CurrentState]
    CURRENT_STATE_REMOVING: _ClassVar[CurrentState]
    CURRENT_STATE_DESTROYING: _ClassVar[CurrentState]
    CURRENT_STATE_DEACTIVATE_PENDING: _ClassVar[CurrentState]

class ServiceState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SERVICE_STATE_UNSPECIFIED: _ClassVar[ServiceState]
    SERVICE_STATE_OFFLINE: _ClassVar[ServiceState]
    SERVICE_STATE_ONLINE: _ClassVar[ServiceState]
    SERVICE_STATE_PREPARING: _ClassVar[ServiceState]
    SERVICE_STATE_UPDATING: _ClassVar[ServiceState]
    SERVICE_STATE_BROKEN: _ClassVar[ServiceState]

class NoData(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NO_DATA_UNSPECIFIED: _ClassVar[NoData]
    NO_DATA_WAIT: _ClassVar[NoData]
    NO_DATA_FAIL: _ClassVar[NoData]
    NO_DATA_PASS: _ClassVar[NoData]

class OrderOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORDER_OUTCOME_UNSPECIFIED: _ClassVar[OrderOutcome]
    ORDER_OUTCOME_OPEN: _ClassVar[OrderOutcome]
    ORDER_OUTCOME_REACHED: _ClassVar[OrderOutcome]
    ORDER_OUTCOME_FAILED: _ClassVar[OrderOutcome]
    ORDER_OUTCOME_ROLLED_BACK: _ClassVar[OrderOutcome]
    ORDER_OUTCOME_SUPERSEDED: _ClassVar[OrderOutcome]
    ORDER_OUTCOME_CANCELLED: _ClassVar[OrderOutcome]

class ControlOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTROL_ORDER_UNSPECIFIED: _ClassVar[ControlOrder]
    CONTROL_ORDER_FREEZE: _ClassVar[ControlOrder]
    CONTROL_ORDER_UNFREEZE: _ClassVar[ControlOrder]
    CONTROL_ORDER_OPEN_EPOCH: _ClassVar[ControlOrder]
TARGET_UNSPECIFIED: Target
TARGET_DESTROYED: Target
TARGET_CREATED: Target
TARGET_PREPARED: Target
TARGET_ACTIVE: Target
CURRENT_STATE_UNSPECIFIED: CurrentState
CURRENT_STATE_GENERATING: CurrentState
CURRENT_STATE_PARTIALLY_CREATED: CurrentState
CURRENT_STATE_CREATED: CurrentState
CURRENT_STATE_PREPARING: CurrentState
CURRENT_STATE_PARTIALLY_PREPARED: CurrentState
CURRENT_STATE_PREPARED: CurrentState
CURRENT_STATE_ACTIVATING: CurrentState
CURRENT_STATE_ACTIVE: CurrentState
CURRENT_STATE_BROKEN: CurrentState
CURRENT_STATE_DEACTIVATING: CurrentState
CURRENT_STATE_REMOVING: CurrentState
CURRENT_STATE_DESTROYING: CurrentState
CURRENT_STATE_DEACTIVATE_PENDING: CurrentState
SERVICE_STATE_UNSPECIFIED: ServiceState
SERVICE_STATE_OFFLINE: ServiceState
SERVICE_STATE_ONLINE: ServiceState
SERVICE_STATE_PREPARING: ServiceState
SERVICE_STATE_UPDATING: ServiceState
SERVICE_STATE_BROKEN: ServiceState
NO_DATA_UNSPECIFIED: NoData
NO_DATA_WAIT: NoData
NO_DATA_FAIL: NoData
NO_DATA_PASS: NoData
ORDER_OUTCOME_UNSPECIFIED: OrderOutcome
ORDER_OUTCOME_OPEN: OrderOutcome
ORDER_OUTCOME_REACHED: OrderOutcome
ORDER_OUTCOME_FAILED: OrderOutcome
ORDER_OUTCOME_ROLLED_BACK: OrderOutcome
ORDER_OUTCOME_SUPERSEDED: OrderOutcome
ORDER_OUTCOME_CANCELLED: OrderOutcome
CONTROL_ORDER_UNSPECIFIED: ControlOrder
CONTROL_ORDER_FREEZE: ControlOrder
CONTROL_ORDER_UNFREEZE: ControlOrder
CONTROL_ORDER_OPEN_EPOCH: ControlOrder

class InfoAttributes(_message.Message):
    __slots__ = ("set_snapshot_as_current_upon_activation", "rollout", "description")
    SET_SNAPSHOT_AS_CURRENT_UPON_ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    set_snapshot_as_current_upon_activation: bool
    rollout: RolloutPolicy
    description: str
    def __init__(self, set_snapshot_as_current_upon_activation: _Optional[bool] = ..., rollout: _Optional[_Union[RolloutPolicy, _Mapping]] = ..., description: _Optional[str] = ...) -> None: ...

class RolloutPolicy(_message.Message):
    __slots__ = ("max_unavailable", "max_failures", "progress_deadline_s", "min_ready_s", "location", "roll_back", "leave_out", "soak_s", "step", "check")
    MAX_UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    MIN_READY_S_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    ROLL_BACK_FIELD_NUMBER: _ClassVar[int]
    LEAVE_OUT_FIELD_NUMBER: _ClassVar[int]
    SOAK_S_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    max_unavailable: str
    max_failures: str
    progress_deadline_s: int
    min_ready_s: int
    location: _containers.RepeatedScalarFieldContainer[str]
    roll_back: bool
    leave_out: _containers.RepeatedScalarFieldContainer[str]
    soak_s: int
    step: _containers.RepeatedCompositeFieldContainer[RolloutStep]
    check: _containers.RepeatedCompositeFieldContainer[RolloutCheck]
    def __init__(self, max_unavailable: _Optional[str] = ..., max_failures: _Optional[str] = ..., progress_deadline_s: _Optional[int] = ..., min_ready_s: _Optional[int] = ..., location: _Optional[_Iterable[str]] = ..., roll_back: _Optional[bool] = ..., leave_out: _Optional[_Iterable[str]] = ..., soak_s: _Optional[int] = ..., step: _Optional[_Iterable[_Union[RolloutStep, _Mapping]]] = ..., check: _Optional[_Iterable[_Union[RolloutCheck, _Mapping]]] = ...) -> None: ...

class RolloutStep(_message.Message):
    __slots__ = ("instances", "weight", "hold_s", "promote", "check")
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    HOLD_S_FIELD_NUMBER: _ClassVar[int]
    PROMOTE_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    instances: str
    weight: str
    hold_s: int
    promote: bool
    check: str
    def __init__(self, instances: _Optional[str] = ..., weight: _Optional[str] = ..., hold_s: _Optional[int] = ..., promote: _Optional[bool] = ..., check: _Optional[str] = ...) -> None: ...

class RolloutCheck(_message.Message):
    __slots__ = ("name", "prometheus", "query", "below", "above", "duration_s", "no_data")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROMETHEUS_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    ABOVE_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    NO_DATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    prometheus: str
    query: str
    below: float
    above: float
    duration_s: int
    no_data: NoData
    def __init__(self, name: _Optional[str] = ..., prometheus: _Optional[str] = ..., query: _Optional[str] = ..., below: _Optional[float] = ..., above: _Optional[float] = ..., duration_s: _Optional[int] = ..., no_data: _Optional[_Union[NoData, str]] = ...) -> None: ...

class Authorship(_message.Message):
    __slots__ = ("author", "time", "comment", "ticket")
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    author: str
    time: _timestamp_pb2.Timestamp
    comment: str
    ticket: str
    def __init__(self, author: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., comment: _Optional[str] = ..., ticket: _Optional[str] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("id", "target", "outcome", "message", "instead_snapshot_id", "skip_steps", "end_time", "roll_back")
    ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    INSTEAD_SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    SKIP_STEPS_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    ROLL_BACK_FIELD_NUMBER: _ClassVar[int]
    id: str
    target: Target
    outcome: OrderOutcome
    message: str
    instead_snapshot_id: str
    skip_steps: bool
    end_time: _timestamp_pb2.Timestamp
    roll_back: bool
    def __init__(self, id: _Optional[str] = ..., target: _Optional[_Union[Target, str]] = ..., outcome: _Optional[_Union[OrderOutcome, str]] = ..., message: _Optional[str] = ..., instead_snapshot_id: _Optional[str] = ..., skip_steps: _Optional[bool] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., roll_back: _Optional[bool] = ...) -> None: ...

class SnapshotState(_message.Message):
    __slots__ = ("snapshot_id", "current", "current_since", "target", "target_set", "fill_pods_configuration", "action", "has_instance_targets", "message", "order", "restart_of", "has_served")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_SINCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TARGET_SET_FIELD_NUMBER: _ClassVar[int]
    FILL_PODS_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    HAS_INSTANCE_TARGETS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    RESTART_OF_FIELD_NUMBER: _ClassVar[int]
    HAS_SERVED_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    current: CurrentState
    current_since: _timestamp_pb2.Timestamp
    target: Target
    target_set: Authorship
    fill_pods_configuration: bool
    action: ActionProgress
    has_instance_targets: bool
    message: str
    order: Order
    restart_of: str
    has_served: bool
    def __init__(self, snapshot_id: _Optional[str] = ..., current: _Optional[_Union[CurrentState, str]] = ..., current_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., target: _Optional[_Union[Target, str]] = ..., target_set: _Optional[_Union[Authorship, _Mapping]] = ..., fill_pods_configuration: _Optional[bool] = ..., action: _Optional[_Union[ActionProgress, _Mapping]] = ..., has_instance_targets: _Optional[bool] = ..., message: _Optional[str] = ..., order: _Optional[_Union[Order, _Mapping]] = ..., restart_of: _Optional[str] = ..., has_served: _Optional[bool] = ...) -> None: ...

class ActionProgress(_message.Message):
    __slots__ = ("action", "number", "message", "since", "location", "batches_done", "cms_task", "step", "step_number", "step_ms", "check_result", "judged")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    BATCHES_DONE_FIELD_NUMBER: _ClassVar[int]
    CMS_TASK_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STEP_NUMBER_FIELD_NUMBER: _ClassVar[int]
    STEP_MS_FIELD_NUMBER: _ClassVar[int]
    CHECK_RESULT_FIELD_NUMBER: _ClassVar[int]
    JUDGED_FIELD_NUMBER: _ClassVar[int]
    action: str
    number: int
    message: str
    since: _timestamp_pb2.Timestamp
    location: _containers.RepeatedCompositeFieldContainer[LocationProgress]
    batches_done: int
    cms_task: str
    step: _containers.RepeatedCompositeFieldContainer[RolloutStep]
    step_number: int
    step_ms: int
    check_result: str
    judged: _containers.RepeatedCompositeFieldContainer[JudgedInstance]
    def __init__(self, action: _Optional[str] = ..., number: _Optional[int] = ..., message: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., location: _Optional[_Iterable[_Union[LocationProgress, _Mapping]]] = ..., batches_done: _Optional[int] = ..., cms_task: _Optional[str] = ..., step: _Optional[_Iterable[_Union[RolloutStep, _Mapping]]] = ..., step_number: _Optional[int] = ..., step_ms: _Optional[int] = ..., check_result: _Optional[str] = ..., judged: _Optional[_Iterable[_Union[JudgedInstance, _Mapping]]] = ...) -> None: ...

class RolloutBatch(_message.Message):
    __slots__ = ("number", "instances", "instance", "ask_time", "begin_time", "end_time", "cms_task")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    ASK_TIME_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    CMS_TASK_FIELD_NUMBER: _ClassVar[int]
    number: int
    instances: int
    instance: _containers.RepeatedScalarFieldContainer[str]
    ask_time: _timestamp_pb2.Timestamp
    begin_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    cms_task: str
    def __init__(self, number: _Optional[int] = ..., instances: _Optional[int] = ..., instance: _Optional[_Iterable[str]] = ..., ask_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., begin_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cms_task: _Optional[str] = ...) -> None: ...

class JudgedInstance(_message.Message):
    __slots__ = ("id", "location", "verdict", "time", "message", "output")
    ID_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    id: str
    location: str
    verdict: str
    time: _timestamp_pb2.Timestamp
    message: str
    output: str
    def __init__(self, id: _Optional[str] = ..., location: _Optional[str] = ..., verdict: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., message: _Optional[str] = ..., output: _Optional[str] = ...) -> None: ...

class RolloutStepRecord(_message.Message):
    __slots__ = ("step", "begin_time", "end_time", "promoted", "check_result")
    STEP_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PROMOTED_FIELD_NUMBER: _ClassVar[int]
    CHECK_RESULT_FIELD_NUMBER: _ClassVar[int]
    step: RolloutStep
    begin_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    promoted: Authorship
    check_result: str
    def __init__(self, step: _Optional[_Union[RolloutStep, _Mapping]] = ..., begin_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., promoted: _Optional[_Union[Authorship, _Mapping]] = ..., check_result: _Optional[str] = ...) -> None: ...

class Rollout(_message.Message):
    __slots__ = ("snapshot_id", "current", "ordered", "order", "begin_time", "end_time", "batch", "judged", "message", "step", "aborted")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    ORDERED_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    JUDGED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    ABORTED_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    current: CurrentState
    ordered: Authorship
    order: Order
    begin_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    batch: _containers.RepeatedCompositeFieldContainer[RolloutBatch]
    judged: _containers.RepeatedCompositeFieldContainer[JudgedInstance]
    message: str
    step: _containers.RepeatedCompositeFieldContainer[RolloutStepRecord]
    aborted: Authorship
    def __init__(self, snapshot_id: _Optional[str] = ..., current: _Optional[_Union[CurrentState, str]] = ..., ordered: _Optional[_Union[Authorship, _Mapping]] = ..., order: _Optional[_Union[Order, _Mapping]] = ..., begin_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., batch: _Optional[_Iterable[_Union[RolloutBatch, _Mapping]]] = ..., judged: _Optional[_Iterable[_Union[JudgedInstance, _Mapping]]] = ..., message: _Optional[str] = ..., step: _Optional[_Iterable[_Union[RolloutStepRecord, _Mapping]]] = ..., aborted: _Optional[_Union[Authorship, _Mapping]] = ...) -> None: ...

class LocationProgress(_message.Message):
    __slots__ = ("location", "total", "done", "under_way", "left", "failed", "error")
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    UNDER_WAY_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    location: str
    total: int
    done: int
    under_way: int
    left: int
    failed: int
    error: str
    def __init__(self, location: _Optional[str] = ..., total: _Optional[int] = ..., done: _Optional[int] = ..., under_way: _Optional[int] = ..., left: _Optional[int] = ..., failed: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class Service(_message.Message):
    __slots__ = ("id", "info", "state", "head", "snapshot", "paused", "version", "pending_events", "stuck", "drift", "creation_time", "ready", "wanted", "remark", "info_version")
    ID_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PENDING_EVENTS_FIELD_NUMBER: _ClassVar[int]
    STUCK_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    CREATION_TIME_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    REMARK_FIELD_NUMBER: _ClassVar[int]
    INFO_VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    info: InfoAttributes
    state: ServiceState
    head: str
    snapshot: _containers.RepeatedCompositeFieldContainer[SnapshotState]
    paused: Authorship
    version: int
    pending_events: int
    stuck: str
    drift: _containers.RepeatedScalarFieldContainer[str]
    creation_time: _timestamp_pb2.Timestamp
    ready: int
    wanted: int
    remark: str
    info_version: int
    def __init__(self, id: _Optional[str] = ..., info: _Optional[_Union[InfoAttributes, _Mapping]] = ..., state: _Optional[_Union[ServiceState, str]] = ..., head: _Optional[str] = ..., snapshot: _Optional[_Iterable[_Union[SnapshotState, _Mapping]]] = ..., paused: _Optional[_Union[Authorship, _Mapping]] = ..., version: _Optional[int] = ..., pending_events: _Optional[int] = ..., stuck: _Optional[str] = ..., drift: _Optional[_Iterable[str]] = ..., creation_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ready: _Optional[int] = ..., wanted: _Optional[int] = ..., remark: _Optional[str] = ..., info_version: _Optional[int] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("id", "service_id", "parent", "created", "instances", "size_bytes", "content", "head", "revision_id", "restart_of")
    ID_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    REVISION_ID_FIELD_NUMBER: _ClassVar[int]
    RESTART_OF_FIELD_NUMBER: _ClassVar[int]
    id: str
    service_id: str
    parent: str
    created: Authorship
    instances: int
    size_bytes: int
    content: bytes
    head: bool
    revision_id: str
    restart_of: str
    def __init__(self, id: _Optional[str] = ..., service_id: _Optional[str] = ..., parent: _Optional[str] = ..., created: _Optional[_Union[Authorship, _Mapping]] = ..., instances: _Optional[int] = ..., size_bytes: _Optional[int] = ..., content: _Optional[bytes] = ..., head: _Optional[bool] = ..., revision_id: _Optional[str] = ..., restart_of: _Optional[str] = ...) -> None: ...

class InstanceRow(_message.Message):
    __slots__ = ("id", "location", "node_name", "target", "own_target", "state", "state_name", "meaning", "message", "serving")
    ID_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    OWN_TARGET_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_NAME_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SERVING_FIELD_NUMBER: _ClassVar[int]
    id: str
    location: str
    node_name: str
    target: Target
    own_target: Authorship
    state: str
    state_name: str
    meaning: str
    message: str
    serving: bool
    def __init__(self, id: _Optional[str] = ..., location: _Optional[str] = ..., node_name: _Optional[str] = ..., target: _Optional[_Union[Target, str]] = ..., own_target: _Optional[_Union[Authorship, _Mapping]] = ..., state: _Optional[str] = ..., state_name: _Optional[str] = ..., meaning: _Optional[str] = ..., message: _Optional[str] = ..., serving: _Optional[bool] = ...) -> None: ...

class HistoryEntry(_message.Message):
    __slots__ = ("time", "author", "what", "snapshot_id", "comment")
    TIME_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    author: str
    what: str
    snapshot_id: str
    comment: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., author: _Optional[str] = ..., what: _Optional[str] = ..., snapshot_id: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class CreateServiceRequest(_message.Message):
    __slots__ = ("service_id", "info", "by", "request_id", "adopt")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ADOPT_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    info: InfoAttributes
    by: Authorship
    request_id: str
    adopt: bool
    def __init__(self, service_id: _Optional[str] = ..., info: _Optional[_Union[InfoAttributes, _Mapping]] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ..., adopt: _Optional[bool] = ...) -> None: ...

class CreateServiceResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class UpdateServiceRequest(_message.Message):
    __slots__ = ("service_id", "info", "by", "request_id", "update_mask", "info_version")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    INFO_VERSION_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    info: InfoAttributes
    by: Authorship
    request_id: str
    update_mask: _field_mask_pb2.FieldMask
    info_version: int
    def __init__(self, service_id: _Optional[str] = ..., info: _Optional[_Union[InfoAttributes, _Mapping]] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., info_version: _Optional[int] = ...) -> None: ...

class UpdateServiceResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class DeleteServiceRequest(_message.Message):
    __slots__ = ("service_id", "by", "request_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    by: Authorship
    request_id: str
    def __init__(self, service_id: _Optional[str] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteServiceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServiceRequest(_message.Message):
    __slots__ = ("service_id",)
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    def __init__(self, service_id: _Optional[str] = ...) -> None: ...

class GetServiceResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class ListServicesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListServicesResponse(_message.Message):
    __slots__ = ("service", "next_page_token")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    service: _containers.RepeatedCompositeFieldContainer[Service]
    next_page_token: str
    def __init__(self, service: _Optional[_Iterable[_Union[Service, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CreateSnapshotRequest(_message.Message):
    __slots__ = ("service_id", "content", "parent", "by", "request_id", "validate_only")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    content: bytes
    parent: str
    by: Authorship
    request_id: str
    validate_only: bool
    def __init__(self, service_id: _Optional[str] = ..., content: _Optional[bytes] = ..., parent: _Optional[str] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class CreateSnapshotResponse(_message.Message):
    __slots__ = ("snapshot",)
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: Snapshot
    def __init__(self, snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...

class GetSnapshotRequest(_message.Message):
    __slots__ = ("service_id", "snapshot_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    snapshot_id: str
    def __init__(self, service_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class GetSnapshotResponse(_message.Message):
    __slots__ = ("snapshot",)
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: Snapshot
    def __init__(self, snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...

class ListSnapshotsRequest(_message.Message):
    __slots__ = ("service_id",)
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    def __init__(self, service_id: _Optional[str] = ...) -> None: ...

class ListSnapshotsResponse(_message.Message):
    __slots__ = ("snapshot",)
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: _containers.RepeatedCompositeFieldContainer[Snapshot]
    def __init__(self, snapshot: _Optional[_Iterable[_Union[Snapshot, _Mapping]]] = ...) -> None: ...

class SetTargetRequest(_message.Message):
    __slots__ = ("service_id", "snapshot_id", "target", "fill_pods_configuration", "by", "request_id", "skip_steps", "roll_back")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    FILL_PODS_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SKIP_STEPS_FIELD_NUMBER: _ClassVar[int]
    ROLL_BACK_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    snapshot_id: str
    target: Target
    fill_pods_configuration: bool
    by: Authorship
    request_id: str
    skip_steps: bool
    roll_back: bool
    def __init__(self, service_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ..., target: _Optional[_Union[Target, str]] = ..., fill_pods_configuration: _Optional[bool] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ..., skip_steps: _Optional[bool] = ..., roll_back: _Optional[bool] = ...) -> None: ...

class SetTargetResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class SetInstanceTargetRequest(_message.Message):
    __slots__ = ("service_id", "snapshot_id", "location", "instance_id", "target", "by", "request_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    snapshot_id: str
    location: str
    instance_id: str
    target: Target
    by: Authorship
    request_id: str
    def __init__(self, service_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ..., location: _Optional[str] = ..., instance_id: _Optional[str] = ..., target: _Optional[_Union[Target, str]] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SetInstanceTargetResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class PauseActionsRequest(_message.Message):
    __slots__ = ("service_id", "by", "request_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    by: Authorship
    request_id: str
    def __init__(self, service_id: _Optional[str] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class PauseActionsResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class ResumeActionsRequest(_message.Message):
    __slots__ = ("service_id", "by", "request_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    by: Authorship
    request_id: str
    def __init__(self, service_id: _Optional[str] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResumeActionsResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class PromoteRolloutRequest(_message.Message):
    __slots__ = ("service_id", "order_id", "step_number", "by", "request_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_NUMBER_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    order_id: str
    step_number: int
    by: Authorship
    request_id: str
    def __init__(self, service_id: _Optional[str] = ..., order_id: _Optional[str] = ..., step_number: _Optional[int] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class PromoteRolloutResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class AbortRolloutRequest(_message.Message):
    __slots__ = ("service_id", "order_id", "step_number", "by", "request_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_NUMBER_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    order_id: str
    step_number: int
    by: Authorship
    request_id: str
    def __init__(self, service_id: _Optional[str] = ..., order_id: _Optional[str] = ..., step_number: _Optional[int] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class AbortRolloutResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class RestartServiceRequest(_message.Message):
    __slots__ = ("service_id", "by", "request_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    by: Authorship
    request_id: str
    def __init__(self, service_id: _Optional[str] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class RestartServiceResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class StopServiceRequest(_message.Message):
    __slots__ = ("service_id", "by", "request_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    by: Authorship
    request_id: str
    def __init__(self, service_id: _Optional[str] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class StopServiceResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class ListInstancesRequest(_message.Message):
    __slots__ = ("service_id", "snapshot_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    snapshot_id: str
    def __init__(self, service_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class ListInstancesResponse(_message.Message):
    __slots__ = ("snapshot_id", "instance", "missing")
    class MissingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    instance: _containers.RepeatedCompositeFieldContainer[InstanceRow]
    missing: _containers.ScalarMap[str, str]
    def __init__(self, snapshot_id: _Optional[str] = ..., instance: _Optional[_Iterable[_Union[InstanceRow, _Mapping]]] = ..., missing: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListHistoryRequest(_message.Message):
    __slots__ = ("service_id",)
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    def __init__(self, service_id: _Optional[str] = ...) -> None: ...

class ListHistoryResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: _containers.RepeatedCompositeFieldContainer[HistoryEntry]
    def __init__(self, entry: _Optional[_Iterable[_Union[HistoryEntry, _Mapping]]] = ...) -> None: ...

class GetRolloutRequest(_message.Message):
    __slots__ = ("service_id", "snapshot_id")
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    snapshot_id: str
    def __init__(self, service_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class GetRolloutResponse(_message.Message):
    __slots__ = ("rollout",)
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    rollout: Rollout
    def __init__(self, rollout: _Optional[_Union[Rollout, _Mapping]] = ...) -> None: ...

class WatchServiceRequest(_message.Message):
    __slots__ = ("service_id",)
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    service_id: str
    def __init__(self, service_id: _Optional[str] = ...) -> None: ...

class WatchServiceResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: Service
    def __init__(self, service: _Optional[_Union[Service, _Mapping]] = ...) -> None: ...

class GetControlRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetControlResponse(_message.Message):
    __slots__ = ("control",)
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    control: ControlState
    def __init__(self, control: _Optional[_Union[ControlState, _Mapping]] = ...) -> None: ...

class ControlState(_message.Message):
    __slots__ = ("process", "acting", "why_not", "epoch", "open", "frozen", "location", "cms")
    class LocationEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    ACTING_FIELD_NUMBER: _ClassVar[int]
    WHY_NOT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    CMS_FIELD_NUMBER: _ClassVar[int]
    process: str
    acting: str
    why_not: str
    epoch: str
    open: bool
    frozen: Authorship
    location: _containers.ScalarMap[str, str]
    cms: str
    def __init__(self, process: _Optional[str] = ..., acting: _Optional[str] = ..., why_not: _Optional[str] = ..., epoch: _Optional[str] = ..., open: _Optional[bool] = ..., frozen: _Optional[_Union[Authorship, _Mapping]] = ..., location: _Optional[_Mapping[str, str]] = ..., cms: _Optional[str] = ...) -> None: ...

class SetControlRequest(_message.Message):
    __slots__ = ("order", "by")
    ORDER_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    order: ControlOrder
    by: Authorship
    def __init__(self, order: _Optional[_Union[ControlOrder, str]] = ..., by: _Optional[_Union[Authorship, _Mapping]] = ...) -> None: ...

class SetControlResponse(_message.Message):
    __slots__ = ("control",)
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    control: ControlState
    def __init__(self, control: _Optional[_Union[ControlState, _Mapping]] = ...) -> None: ...
