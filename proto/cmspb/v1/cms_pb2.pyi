import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATUS_UNSPECIFIED: _ClassVar[TaskStatus]
    TASK_STATUS_IN_PROCESS: _ClassVar[TaskStatus]
    TASK_STATUS_OK: _ClassVar[TaskStatus]
    TASK_STATUS_REJECTED: _ClassVar[TaskStatus]
TASK_STATUS_UNSPECIFIED: TaskStatus
TASK_STATUS_IN_PROCESS: TaskStatus
TASK_STATUS_OK: TaskStatus
TASK_STATUS_REJECTED: TaskStatus

class InstanceRef(_message.Message):
    __slots__ = ("location", "id")
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    location: str
    id: str
    def __init__(self, location: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("id", "action", "host", "instance", "issuer", "type", "group_id", "comment", "failure", "confirm", "already_running", "rollback", "max_failures")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    ALREADY_RUNNING_FIELD_NUMBER: _ClassVar[int]
    ROLLBACK_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    id: str
    action: str
    host: _containers.RepeatedScalarFieldContainer[str]
    instance: _containers.RepeatedCompositeFieldContainer[InstanceRef]
    issuer: str
    type: str
    group_id: str
    comment: str
    failure: str
    confirm: bool
    already_running: bool
    rollback: bool
    max_failures: int
    def __init__(self, id: _Optional[str] = ..., action: _Optional[str] = ..., host: _Optional[_Iterable[str]] = ..., instance: _Optional[_Iterable[_Union[InstanceRef, _Mapping]]] = ..., issuer: _Optional[str] = ..., type: _Optional[str] = ..., group_id: _Optional[str] = ..., comment: _Optional[str] = ..., failure: _Optional[str] = ..., confirm: _Optional[bool] = ..., already_running: _Optional[bool] = ..., rollback: _Optional[bool] = ..., max_failures: _Optional[int] = ...) -> None: ...

class TaskState(_message.Message):
    __slots__ = ("task", "status", "message", "is_provisional", "create_time", "since_time", "is_overdue", "owner", "retry_after_seconds", "note", "need")
    TASK_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    IS_PROVISIONAL_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SINCE_TIME_FIELD_NUMBER: _ClassVar[int]
    IS_OVERDUE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    task: Task
    status: TaskStatus
    message: str
    is_provisional: bool
    create_time: _timestamp_pb2.Timestamp
    since_time: _timestamp_pb2.Timestamp
    is_overdue: bool
    owner: str
    retry_after_seconds: int
    note: _containers.RepeatedScalarFieldContainer[str]
    need: str
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ..., status: _Optional[_Union[TaskStatus, str]] = ..., message: _Optional[str] = ..., is_provisional: _Optional[bool] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., since_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., is_overdue: _Optional[bool] = ..., owner: _Optional[str] = ..., retry_after_seconds: _Optional[int] = ..., note: _Optional[_Iterable[str]] = ..., need: _Optional[str] = ...) -> None: ...

class CreateTaskRequest(_message.Message):
    __slots__ = ("task", "dry_run")
    TASK_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    task: Task
    dry_run: bool
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class CreateTaskResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: TaskState
    def __init__(self, state: _Optional[_Union[TaskState, _Mapping]] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetTaskResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: TaskState
    def __init__(self, state: _Optional[_Union[TaskState, _Mapping]] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("host", "service", "issuer")
    HOST_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    host: str
    service: str
    issuer: str
    def __init__(self, host: _Optional[str] = ..., service: _Optional[str] = ..., issuer: _Optional[str] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _containers.RepeatedCompositeFieldContainer[TaskState]
    def __init__(self, state: _Optional[_Iterable[_Union[TaskState, _Mapping]]] = ...) -> None: ...

class DeleteTaskRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class DeleteTaskResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ConfirmTaskRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ConfirmTaskResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: TaskState
    def __init__(self, state: _Optional[_Union[TaskState, _Mapping]] = ...) -> None: ...

class WhyTaskRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class WhyTaskResponse(_message.Message):
    __slots__ = ("state", "budget", "limit")
    STATE_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    state: TaskState
    budget: _containers.RepeatedCompositeFieldContainer[BudgetState]
    limit: _containers.RepeatedCompositeFieldContainer[LimitState]
    def __init__(self, state: _Optional[_Union[TaskState, _Mapping]] = ..., budget: _Optional[_Iterable[_Union[BudgetState, _Mapping]]] = ..., limit: _Optional[_Iterable[_Union[LimitState, _Mapping]]] = ...) -> None: ...

class BudgetState(_message.Message):
    __slots__ = ("name", "rule", "total", "floor", "available", "needs", "blocks", "holder", "not_ready", "not_ready_total")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    NOT_READY_FIELD_NUMBER: _ClassVar[int]
    NOT_READY_TOTAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    rule: str
    total: int
    floor: int
    available: int
    needs: int
    blocks: bool
    holder: _containers.RepeatedCompositeFieldContainer[Holder]
    not_ready: _containers.RepeatedCompositeFieldContainer[NotReady]
    not_ready_total: int
    def __init__(self, name: _Optional[str] = ..., rule: _Optional[str] = ..., total: _Optional[int] = ..., floor: _Optional[int] = ..., available: _Optional[int] = ..., needs: _Optional[int] = ..., blocks: _Optional[bool] = ..., holder: _Optional[_Iterable[_Union[Holder, _Mapping]]] = ..., not_ready: _Optional[_Iterable[_Union[NotReady, _Mapping]]] = ..., not_ready_total: _Optional[int] = ...) -> None: ...

class Holder(_message.Message):
    __slots__ = ("task_id", "issuer", "action", "since_time", "instances", "is_overdue")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    SINCE_TIME_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    IS_OVERDUE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    issuer: str
    action: str
    since_time: _timestamp_pb2.Timestamp
    instances: int
    is_overdue: bool
    def __init__(self, task_id: _Optional[str] = ..., issuer: _Optional[str] = ..., action: _Optional[str] = ..., since_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., instances: _Optional[int] = ..., is_overdue: _Optional[bool] = ...) -> None: ...

class NotReady(_message.Message):
    __slots__ = ("instance", "host", "standing", "reason")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    instance: InstanceRef
    host: str
    standing: str
    reason: str
    def __init__(self, instance: _Optional[_Union[InstanceRef, _Mapping]] = ..., host: _Optional[str] = ..., standing: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class LimitState(_message.Message):
    __slots__ = ("name", "kind", "most", "busy", "blocks")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    most: int
    busy: _containers.RepeatedScalarFieldContainer[str]
    blocks: bool
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., most: _Optional[int] = ..., busy: _Optional[_Iterable[str]] = ..., blocks: _Optional[bool] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("host", "action")
    HOST_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    host: _containers.RepeatedScalarFieldContainer[str]
    action: str
    def __init__(self, host: _Optional[_Iterable[str]] = ..., action: _Optional[str] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("wave", "misfit", "unknown")
    WAVE_FIELD_NUMBER: _ClassVar[int]
    MISFIT_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    wave: _containers.RepeatedCompositeFieldContainer[Wave]
    misfit: _containers.RepeatedCompositeFieldContainer[Misfit]
    unknown: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, wave: _Optional[_Iterable[_Union[Wave, _Mapping]]] = ..., misfit: _Optional[_Iterable[_Union[Misfit, _Mapping]]] = ..., unknown: _Optional[_Iterable[str]] = ...) -> None: ...

class Wave(_message.Message):
    __slots__ = ("host",)
    HOST_FIELD_NUMBER: _ClassVar[int]
    host: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, host: _Optional[_Iterable[str]] = ...) -> None: ...

class Misfit(_message.Message):
    __slots__ = ("host", "reason")
    HOST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    host: str
    reason: str
    def __init__(self, host: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("name", "service", "labels", "cluster", "min_ready", "max_unavailable", "reject_impossible", "brief")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    MIN_READY_FIELD_NUMBER: _ClassVar[int]
    MAX_UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    REJECT_IMPOSSIBLE_FIELD_NUMBER: _ClassVar[int]
    BRIEF_FIELD_NUMBER: _ClassVar[int]
    name: str
    service: str
    labels: _containers.ScalarMap[str, str]
    cluster: _containers.RepeatedScalarFieldContainer[str]
    min_ready: str
    max_unavailable: str
    reject_impossible: bool
    brief: Brief
    def __init__(self, name: _Optional[str] = ..., service: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., cluster: _Optional[_Iterable[str]] = ..., min_ready: _Optional[str] = ..., max_unavailable: _Optional[str] = ..., reject_impossible: _Optional[bool] = ..., brief: _Optional[_Union[Brief, _Mapping]] = ...) -> None: ...

class Brief(_message.Message):
    __slots__ = ("max_unavailable", "within")
    MAX_UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    max_unavailable: str
    within: str
    def __init__(self, max_unavailable: _Optional[str] = ..., within: _Optional[str] = ...) -> None: ...

class PutBudgetRequest(_message.Message):
    __slots__ = ("budget",)
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    budget: Budget
    def __init__(self, budget: _Optional[_Union[Budget, _Mapping]] = ...) -> None: ...

class PutBudgetResponse(_message.Message):
    __slots__ = ("budget",)
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    budget: Budget
    def __init__(self, budget: _Optional[_Union[Budget, _Mapping]] = ...) -> None: ...

class ListBudgetsRequest(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: str
    def __init__(self, service: _Optional[str] = ...) -> None: ...

class ListBudgetsResponse(_message.Message):
    __slots__ = ("state", "budget")
    STATE_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    state: _containers.RepeatedCompositeFieldContainer[BudgetState]
    budget: _containers.RepeatedCompositeFieldContainer[Budget]
    def __init__(self, state: _Optional[_Iterable[_Union[BudgetState, _Mapping]]] = ..., budget: _Optional[_Iterable[_Union[Budget, _Mapping]]] = ...) -> None: ...

class DeleteBudgetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteBudgetResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Windows(_message.Message):
    __slots__ = ("name", "service", "project", "zone", "hours", "margin", "freeze")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    HOURS_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    FREEZE_FIELD_NUMBER: _ClassVar[int]
    name: str
    service: str
    project: str
    zone: str
    hours: _containers.RepeatedCompositeFieldContainer[Hours]
    margin: str
    freeze: _containers.RepeatedCompositeFieldContainer[FreezePeriod]
    def __init__(self, name: _Optional[str] = ..., service: _Optional[str] = ..., project: _Optional[str] = ..., zone: _Optional[str] = ..., hours: _Optional[_Iterable[_Union[Hours, _Mapping]]] = ..., margin: _Optional[str] = ..., freeze: _Optional[_Iterable[_Union[FreezePeriod, _Mapping]]] = ...) -> None: ...

class Hours(_message.Message):
    __slots__ = ("days", "begin", "end")
    DAYS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    days: str
    begin: str
    end: str
    def __init__(self, days: _Optional[str] = ..., begin: _Optional[str] = ..., end: _Optional[str] = ...) -> None: ...

class FreezePeriod(_message.Message):
    __slots__ = ("begin", "end", "reason", "repairs")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REPAIRS_FIELD_NUMBER: _ClassVar[int]
    begin: str
    end: str
    reason: str
    repairs: bool
    def __init__(self, begin: _Optional[str] = ..., end: _Optional[str] = ..., reason: _Optional[str] = ..., repairs: _Optional[bool] = ...) -> None: ...

class PutWindowsRequest(_message.Message):
    __slots__ = ("windows",)
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    windows: Windows
    def __init__(self, windows: _Optional[_Union[Windows, _Mapping]] = ...) -> None: ...

class PutWindowsResponse(_message.Message):
    __slots__ = ("windows",)
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    windows: Windows
    def __init__(self, windows: _Optional[_Union[Windows, _Mapping]] = ...) -> None: ...

class ListWindowsRequest(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: str
    def __init__(self, service: _Optional[str] = ...) -> None: ...

class ListWindowsResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _containers.RepeatedCompositeFieldContainer[WindowsState]
    def __init__(self, state: _Optional[_Iterable[_Union[WindowsState, _Mapping]]] = ...) -> None: ...

class WindowsState(_message.Message):
    __slots__ = ("windows", "is_open", "message", "open_time")
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    IS_OPEN_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OPEN_TIME_FIELD_NUMBER: _ClassVar[int]
    windows: Windows
    is_open: bool
    message: str
    open_time: _timestamp_pb2.Timestamp
    def __init__(self, windows: _Optional[_Union[Windows, _Mapping]] = ..., is_open: _Optional[bool] = ..., message: _Optional[str] = ..., open_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class DeleteWindowsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteWindowsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EndDeclarationRequest(_message.Message):
    __slots__ = ("issuer",)
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    issuer: str
    def __init__(self, issuer: _Optional[str] = ...) -> None: ...

class EndDeclarationResponse(_message.Message):
    __slots__ = ("missing",)
    MISSING_FIELD_NUMBER: _ClassVar[int]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, missing: _Optional[_Iterable[str]] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("closed", "acting", "location", "epoch", "missing")
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    ACTING_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    closed: str
    acting: str
    location: _containers.RepeatedCompositeFieldContainer[LocationState]
    epoch: str
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, closed: _Optional[str] = ..., acting: _Optional[str] = ..., location: _Optional[_Iterable[_Union[LocationState, _Mapping]]] = ..., epoch: _Optional[str] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class LocationState(_message.Message):
    __slots__ = ("name", "instances", "is_certain", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    IS_CERTAIN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    instances: int
    is_certain: bool
    reason: str
    def __init__(self, name: _Optional[str] = ..., instances: _Optional[int] = ..., is_certain: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class FreezeRequest(_message.Message):
    __slots__ = ("reason", "by")
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    reason: str
    by: str
    def __init__(self, reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class FreezeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UnfreezeRequest(_message.Message):
    __slots__ = ("reason", "by")
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    reason: str
    by: str
    def __init__(self, reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class UnfreezeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OpenRequest(_message.Message):
    __slots__ = ("reason", "by")
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    reason: str
    by: str
    def __init__(self, reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class OpenResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExtendTaskRequest(_message.Message):
    __slots__ = ("id", "seconds", "reason", "by")
    ID_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    id: str
    seconds: int
    reason: str
    by: str
    def __init__(self, id: _Optional[str] = ..., seconds: _Optional[int] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class ExtendTaskResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExpediteTaskRequest(_message.Message):
    __slots__ = ("id", "reason", "by")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    by: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class ExpediteTaskResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EndTaskRequest(_message.Message):
    __slots__ = ("id", "reason", "by")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    by: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class EndTaskResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
