import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HostState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOST_STATE_UNSPECIFIED: _ClassVar[HostState]
    HOST_STATE_FREE: _ClassVar[HostState]
    HOST_STATE_ASSIGNED: _ClassVar[HostState]
    HOST_STATE_MAINTENANCE: _ClassVar[HostState]
    HOST_STATE_PROBATION: _ClassVar[HostState]

class HostStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOST_STATUS_UNSPECIFIED: _ClassVar[HostStatus]
    HOST_STATUS_READY: _ClassVar[HostStatus]
    HOST_STATUS_MANUAL: _ClassVar[HostStatus]
    HOST_STATUS_DEAD: _ClassVar[HostStatus]
    HOST_STATUS_INVALID: _ClassVar[HostStatus]

class OperationKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_KIND_UNSPECIFIED: _ClassVar[OperationKind]
    OPERATION_KIND_PREPARE: _ClassVar[OperationKind]
    OPERATION_KIND_DEACTIVATE: _ClassVar[OperationKind]
    OPERATION_KIND_POWER_OFF: _ClassVar[OperationKind]
    OPERATION_KIND_REBOOT: _ClassVar[OperationKind]
    OPERATION_KIND_PROFILE: _ClassVar[OperationKind]
    OPERATION_KIND_REDEPLOY: _ClassVar[OperationKind]
    OPERATION_KIND_REPAIR_LINK: _ClassVar[OperationKind]
    OPERATION_KIND_CHANGE_DISK: _ClassVar[OperationKind]
    OPERATION_KIND_CHANGE_MEMORY: _ClassVar[OperationKind]
    OPERATION_KIND_TEMPORARY_UNREACHABLE: _ClassVar[OperationKind]
    OPERATION_KIND_DNS_FIX: _ClassVar[OperationKind]

class Stage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STAGE_UNSPECIFIED: _ClassVar[Stage]
    STAGE_REQUESTED: _ClassVar[Stage]
    STAGE_APPROVAL: _ClassVar[Stage]
    STAGE_CONFIRMING: _ClassVar[Stage]
    STAGE_RUNNING: _ClassVar[Stage]
    STAGE_VERIFYING: _ClassVar[Stage]
    STAGE_ENDING: _ClassVar[Stage]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_DONE: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]
    OUTCOME_REJECTED: _ClassVar[Outcome]
    OUTCOME_CANCELLED: _ClassVar[Outcome]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_OK: _ClassVar[Verdict]
    VERDICT_IN_PROCESS: _ClassVar[Verdict]
    VERDICT_REJECTED: _ClassVar[Verdict]
HOST_STATE_UNSPECIFIED: HostState
HOST_STATE_FREE: HostState
HOST_STATE_ASSIGNED: HostState
HOST_STATE_MAINTENANCE: HostState
HOST_STATE_PROBATION: HostState
HOST_STATUS_UNSPECIFIED: HostStatus
HOST_STATUS_READY: HostStatus
HOST_STATUS_MANUAL: HostStatus
HOST_STATUS_DEAD: HostStatus
HOST_STATUS_INVALID: HostStatus
OPERATION_KIND_UNSPECIFIED: OperationKind
OPERATION_KIND_PREPARE: OperationKind
OPERATION_KIND_DEACTIVATE: OperationKind
OPERATION_KIND_POWER_OFF: OperationKind
OPERATION_KIND_REBOOT: OperationKind
OPERATION_KIND_PROFILE: OperationKind
OPERATION_KIND_REDEPLOY: OperationKind
OPERATION_KIND_REPAIR_LINK: OperationKind
OPERATION_KIND_CHANGE_DISK: OperationKind
OPERATION_KIND_CHANGE_MEMORY: OperationKind
OPERATION_KIND_TEMPORARY_UNREACHABLE: OperationKind
OPERATION_KIND_DNS_FIX: OperationKind
STAGE_UNSPECIFIED: Stage
STAGE_REQUESTED: Stage
STAGE_APPROVAL: Stage
STAGE_CONFIRMING: Stage
STAGE_RUNNING: Stage
STAGE_VERIFYING: Stage
STAGE_ENDING: Stage
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_DONE: Outcome
OUTCOME_FAILED: Outcome
OUTCOME_REJECTED: Outcome
OUTCOME_CANCELLED: Outcome
VERDICT_UNSPECIFIED: Verdict
VERDICT_OK: Verdict
VERDICT_IN_PROCESS: Verdict
VERDICT_REJECTED: Verdict

class Host(_message.Message):
    __slots__ = ("name", "inventory", "project", "location", "state", "status", "status_reason", "check", "operation", "last_repair", "bmc", "history", "scenario", "state_reason", "boot_id", "address", "released_ms", "listed", "dns_operation", "last_dns_repair", "attempt", "heard_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STATUS_REASON_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    LAST_REPAIR_FIELD_NUMBER: _ClassVar[int]
    BMC_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RELEASED_MS_FIELD_NUMBER: _ClassVar[int]
    LISTED_FIELD_NUMBER: _ClassVar[int]
    DNS_OPERATION_FIELD_NUMBER: _ClassVar[int]
    LAST_DNS_REPAIR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    HEARD_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    inventory: int
    project: str
    location: Location
    state: HostState
    status: HostStatus
    status_reason: str
    check: _containers.RepeatedCompositeFieldContainer[Check]
    operation: Operation
    last_repair: LastRepair
    bmc: str
    history: _containers.RepeatedCompositeFieldContainer[Finished]
    scenario: str
    state_reason: str
    boot_id: str
    address: _containers.RepeatedScalarFieldContainer[str]
    released_ms: int
    listed: bool
    dns_operation: Operation
    last_dns_repair: LastRepair
    attempt: _containers.RepeatedCompositeFieldContainer[RepairAttempt]
    heard_ms: int
    def __init__(self, name: _Optional[str] = ..., inventory: _Optional[int] = ..., project: _Optional[str] = ..., location: _Optional[_Union[Location, _Mapping]] = ..., state: _Optional[_Union[HostState, str]] = ..., status: _Optional[_Union[HostStatus, str]] = ..., status_reason: _Optional[str] = ..., check: _Optional[_Iterable[_Union[Check, _Mapping]]] = ..., operation: _Optional[_Union[Operation, _Mapping]] = ..., last_repair: _Optional[_Union[LastRepair, _Mapping]] = ..., bmc: _Optional[str] = ..., history: _Optional[_Iterable[_Union[Finished, _Mapping]]] = ..., scenario: _Optional[str] = ..., state_reason: _Optional[str] = ..., boot_id: _Optional[str] = ..., address: _Optional[_Iterable[str]] = ..., released_ms: _Optional[int] = ..., listed: _Optional[bool] = ..., dns_operation: _Optional[_Union[Operation, _Mapping]] = ..., last_dns_repair: _Optional[_Union[LastRepair, _Mapping]] = ..., attempt: _Optional[_Iterable[_Union[RepairAttempt, _Mapping]]] = ..., heard_ms: _Optional[int] = ...) -> None: ...

class RepairAttempt(_message.Message):
    __slots__ = ("kind", "check", "at_ms")
    KIND_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    kind: OperationKind
    check: str
    at_ms: int
    def __init__(self, kind: _Optional[_Union[OperationKind, str]] = ..., check: _Optional[str] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Machine(_message.Message):
    __slots__ = ("name", "inventory", "bmc", "address", "location", "project")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_FIELD_NUMBER: _ClassVar[int]
    BMC_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    name: str
    inventory: int
    bmc: str
    address: _containers.RepeatedScalarFieldContainer[str]
    location: Location
    project: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., inventory: _Optional[int] = ..., bmc: _Optional[str] = ..., address: _Optional[_Iterable[str]] = ..., location: _Optional[_Union[Location, _Mapping]] = ..., project: _Optional[_Iterable[str]] = ...) -> None: ...

class Location(_message.Message):
    __slots__ = ("dc", "rack", "switch")
    DC_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    dc: str
    rack: str
    switch: str
    def __init__(self, dc: _Optional[str] = ..., rack: _Optional[str] = ..., switch: _Optional[str] = ...) -> None: ...

class Check(_message.Message):
    __slots__ = ("name", "failing", "since_ms", "since", "source", "text", "said", "unknown")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SAID_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    name: str
    failing: bool
    since_ms: int
    since: _timestamp_pb2.Timestamp
    source: str
    text: str
    said: _containers.RepeatedCompositeFieldContainer[CheckSource]
    unknown: bool
    def __init__(self, name: _Optional[str] = ..., failing: _Optional[bool] = ..., since_ms: _Optional[int] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., source: _Optional[str] = ..., text: _Optional[str] = ..., said: _Optional[_Iterable[_Union[CheckSource, _Mapping]]] = ..., unknown: _Optional[bool] = ...) -> None: ...

class CheckSource(_message.Message):
    __slots__ = ("name", "fingerprint", "failing", "text", "starts_ms", "at_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STARTS_MS_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    fingerprint: str
    failing: bool
    text: str
    starts_ms: int
    at_ms: int
    def __init__(self, name: _Optional[str] = ..., fingerprint: _Optional[str] = ..., failing: _Optional[bool] = ..., text: _Optional[str] = ..., starts_ms: _Optional[int] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("id", "kind", "check", "step", "stage", "since_ms", "task", "old_task", "ignore_cms", "group_id", "by", "reason", "created", "message", "intent", "outcome", "after", "failures", "scenario")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    OLD_TASK_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CMS_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: OperationKind
    check: str
    step: int
    stage: Stage
    since_ms: int
    task: _containers.RepeatedCompositeFieldContainer[Task]
    old_task: _containers.RepeatedCompositeFieldContainer[Task]
    ignore_cms: bool
    group_id: str
    by: str
    reason: str
    created: _timestamp_pb2.Timestamp
    message: str
    intent: Intent
    outcome: Outcome
    after: After
    failures: int
    scenario: str
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[OperationKind, str]] = ..., check: _Optional[str] = ..., step: _Optional[int] = ..., stage: _Optional[_Union[Stage, str]] = ..., since_ms: _Optional[int] = ..., task: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., old_task: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., ignore_cms: _Optional[bool] = ..., group_id: _Optional[str] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., message: _Optional[str] = ..., intent: _Optional[_Union[Intent, _Mapping]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., after: _Optional[_Union[After, _Mapping]] = ..., failures: _Optional[int] = ..., scenario: _Optional[str] = ...) -> None: ...

class After(_message.Message):
    __slots__ = ("state", "project", "remove")
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    state: HostState
    project: str
    remove: bool
    def __init__(self, state: _Optional[_Union[HostState, str]] = ..., project: _Optional[str] = ..., remove: _Optional[bool] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("id", "cms", "verdict", "message", "created", "confirmed", "provisional", "ok_since_ms", "not_before_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    CMS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    PROVISIONAL_FIELD_NUMBER: _ClassVar[int]
    OK_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    cms: str
    verdict: Verdict
    message: str
    created: bool
    confirmed: bool
    provisional: bool
    ok_since_ms: int
    not_before_ms: int
    def __init__(self, id: _Optional[str] = ..., cms: _Optional[str] = ..., verdict: _Optional[_Union[Verdict, str]] = ..., message: _Optional[str] = ..., created: _Optional[bool] = ..., confirmed: _Optional[bool] = ..., provisional: _Optional[bool] = ..., ok_since_ms: _Optional[int] = ..., not_before_ms: _Optional[int] = ...) -> None: ...

class Intent(_message.Message):
    __slots__ = ("executor", "before", "handle", "attempts", "done", "output", "attempt_ms")
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_MS_FIELD_NUMBER: _ClassVar[int]
    executor: str
    before: str
    handle: str
    attempts: int
    done: bool
    output: str
    attempt_ms: int
    def __init__(self, executor: _Optional[str] = ..., before: _Optional[str] = ..., handle: _Optional[str] = ..., attempts: _Optional[int] = ..., done: _Optional[bool] = ..., output: _Optional[str] = ..., attempt_ms: _Optional[int] = ...) -> None: ...

class LastRepair(_message.Message):
    __slots__ = ("check", "step", "kind", "outcome", "at_ms")
    CHECK_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    check: str
    step: int
    kind: OperationKind
    outcome: Outcome
    at_ms: int
    def __init__(self, check: _Optional[str] = ..., step: _Optional[int] = ..., kind: _Optional[_Union[OperationKind, str]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("id", "kind", "check", "outcome", "message", "by", "created", "ended", "output")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: OperationKind
    check: str
    outcome: Outcome
    message: str
    by: str
    created: _timestamp_pb2.Timestamp
    ended: _timestamp_pb2.Timestamp
    output: str
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[OperationKind, str]] = ..., check: _Optional[str] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., message: _Optional[str] = ..., by: _Optional[str] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., output: _Optional[str] = ...) -> None: ...
