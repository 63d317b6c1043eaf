from cmspb.v1 import cms_pb2 as _cms_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FollowLedgerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FollowLedgerResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: _containers.RepeatedCompositeFieldContainer[LedgerEntry]
    def __init__(self, entry: _Optional[_Iterable[_Union[LedgerEntry, _Mapping]]] = ...) -> None: ...

class LedgerEntry(_message.Message):
    __slots__ = ("start", "instance", "instance_gone", "task", "task_gone", "budgets", "limits", "calendar", "certain", "decision")
    START_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_GONE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TASK_GONE_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    CALENDAR_FIELD_NUMBER: _ClassVar[int]
    CERTAIN_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    start: LedgerStart
    instance: LedgerInstance
    instance_gone: _cms_pb2.InstanceRef
    task: LedgerTask
    task_gone: str
    budgets: LedgerBudgets
    limits: LedgerLimits
    calendar: LedgerCalendar
    certain: LedgerLocations
    decision: LedgerDecision
    def __init__(self, start: _Optional[_Union[LedgerStart, _Mapping]] = ..., instance: _Optional[_Union[LedgerInstance, _Mapping]] = ..., instance_gone: _Optional[_Union[_cms_pb2.InstanceRef, _Mapping]] = ..., task: _Optional[_Union[LedgerTask, _Mapping]] = ..., task_gone: _Optional[str] = ..., budgets: _Optional[_Union[LedgerBudgets, _Mapping]] = ..., limits: _Optional[_Union[LedgerLimits, _Mapping]] = ..., calendar: _Optional[_Union[LedgerCalendar, _Mapping]] = ..., certain: _Optional[_Union[LedgerLocations, _Mapping]] = ..., decision: _Optional[_Union[LedgerDecision, _Mapping]] = ...) -> None: ...

class LedgerStart(_message.Message):
    __slots__ = ("rule", "location", "stuck", "wall_offset_s")
    class RuleEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    RULE_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    STUCK_FIELD_NUMBER: _ClassVar[int]
    WALL_OFFSET_S_FIELD_NUMBER: _ClassVar[int]
    rule: _containers.ScalarMap[str, float]
    location: _containers.RepeatedScalarFieldContainer[str]
    stuck: _containers.RepeatedCompositeFieldContainer[StuckUnit]
    wall_offset_s: float
    def __init__(self, rule: _Optional[_Mapping[str, float]] = ..., location: _Optional[_Iterable[str]] = ..., stuck: _Optional[_Iterable[_Union[StuckUnit, _Mapping]]] = ..., wall_offset_s: _Optional[float] = ...) -> None: ...

class StuckUnit(_message.Message):
    __slots__ = ("owner", "group_id", "task_id", "since_s")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    owner: str
    group_id: str
    task_id: str
    since_s: float
    def __init__(self, owner: _Optional[str] = ..., group_id: _Optional[str] = ..., task_id: _Optional[str] = ..., since_s: _Optional[float] = ...) -> None: ...

class LedgerInstance(_message.Message):
    __slots__ = ("ref", "service", "host", "is_wanted", "is_ready", "was_ready", "cluster", "labels", "is_doubted", "is_silent")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REF_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    IS_WANTED_FIELD_NUMBER: _ClassVar[int]
    IS_READY_FIELD_NUMBER: _ClassVar[int]
    WAS_READY_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    IS_DOUBTED_FIELD_NUMBER: _ClassVar[int]
    IS_SILENT_FIELD_NUMBER: _ClassVar[int]
    ref: _cms_pb2.InstanceRef
    service: str
    host: str
    is_wanted: bool
    is_ready: bool
    was_ready: bool
    cluster: str
    labels: _containers.ScalarMap[str, str]
    is_doubted: bool
    is_silent: bool
    def __init__(self, ref: _Optional[_Union[_cms_pb2.InstanceRef, _Mapping]] = ..., service: _Optional[str] = ..., host: _Optional[str] = ..., is_wanted: _Optional[bool] = ..., is_ready: _Optional[bool] = ..., was_ready: _Optional[bool] = ..., cluster: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., is_doubted: _Optional[bool] = ..., is_silent: _Optional[bool] = ...) -> None: ...

class LedgerTask(_message.Message):
    __slots__ = ("id", "order", "action", "host", "instance", "owner", "issuer", "group_id", "confirm", "state", "need", "added_s", "polled_s", "since_s", "asked_s", "overdue_s", "max_failures")
    ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    ADDED_S_FIELD_NUMBER: _ClassVar[int]
    POLLED_S_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    ASKED_S_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_S_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    id: str
    order: int
    action: str
    host: _containers.RepeatedScalarFieldContainer[str]
    instance: _containers.RepeatedCompositeFieldContainer[_cms_pb2.InstanceRef]
    owner: str
    issuer: str
    group_id: str
    confirm: bool
    state: str
    need: str
    added_s: float
    polled_s: float
    since_s: float
    asked_s: float
    overdue_s: float
    max_failures: int
    def __init__(self, id: _Optional[str] = ..., order: _Optional[int] = ..., action: _Optional[str] = ..., host: _Optional[_Iterable[str]] = ..., instance: _Optional[_Iterable[_Union[_cms_pb2.InstanceRef, _Mapping]]] = ..., owner: _Optional[str] = ..., issuer: _Optional[str] = ..., group_id: _Optional[str] = ..., confirm: _Optional[bool] = ..., state: _Optional[str] = ..., need: _Optional[str] = ..., added_s: _Optional[float] = ..., polled_s: _Optional[float] = ..., since_s: _Optional[float] = ..., asked_s: _Optional[float] = ..., overdue_s: _Optional[float] = ..., max_failures: _Optional[int] = ...) -> None: ...

class LedgerBudgets(_message.Message):
    __slots__ = ("budget", "default_max_unavailable")
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MAX_UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    budget: _containers.RepeatedCompositeFieldContainer[_cms_pb2.Budget]
    default_max_unavailable: str
    def __init__(self, budget: _Optional[_Iterable[_Union[_cms_pb2.Budget, _Mapping]]] = ..., default_max_unavailable: _Optional[str] = ...) -> None: ...

class LedgerLimits(_message.Message):
    __slots__ = ("limit", "site")
    class SiteEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: HostSite
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[HostSite, _Mapping]] = ...) -> None: ...
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    limit: _containers.RepeatedCompositeFieldContainer[DomainLimitRule]
    site: _containers.MessageMap[str, HostSite]
    def __init__(self, limit: _Optional[_Iterable[_Union[DomainLimitRule, _Mapping]]] = ..., site: _Optional[_Mapping[str, HostSite]] = ...) -> None: ...

class DomainLimitRule(_message.Message):
    __slots__ = ("name", "kind", "most", "within")
    class WithinEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    most: int
    within: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., most: _Optional[int] = ..., within: _Optional[_Mapping[str, str]] = ...) -> None: ...

class HostSite(_message.Message):
    __slots__ = ("dc", "rack", "switch", "project")
    DC_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    dc: str
    rack: str
    switch: str
    project: str
    def __init__(self, dc: _Optional[str] = ..., rack: _Optional[str] = ..., switch: _Optional[str] = ..., project: _Optional[str] = ...) -> None: ...

class LedgerCalendar(_message.Message):
    __slots__ = ("rule",)
    RULE_FIELD_NUMBER: _ClassVar[int]
    rule: _containers.RepeatedCompositeFieldContainer[CalendarRuleRecord]
    def __init__(self, rule: _Optional[_Iterable[_Union[CalendarRuleRecord, _Mapping]]] = ...) -> None: ...

class CalendarRuleRecord(_message.Message):
    __slots__ = ("name", "service", "project", "zone", "margin_s", "window", "freeze")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    MARGIN_S_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    FREEZE_FIELD_NUMBER: _ClassVar[int]
    name: str
    service: str
    project: str
    zone: str
    margin_s: float
    window: _containers.RepeatedCompositeFieldContainer[WeeklyWindow]
    freeze: _containers.RepeatedCompositeFieldContainer[FreezeSpan]
    def __init__(self, name: _Optional[str] = ..., service: _Optional[str] = ..., project: _Optional[str] = ..., zone: _Optional[str] = ..., margin_s: _Optional[float] = ..., window: _Optional[_Iterable[_Union[WeeklyWindow, _Mapping]]] = ..., freeze: _Optional[_Iterable[_Union[FreezeSpan, _Mapping]]] = ...) -> None: ...

class WeeklyWindow(_message.Message):
    __slots__ = ("day", "begin_minute", "end_minute")
    DAY_FIELD_NUMBER: _ClassVar[int]
    BEGIN_MINUTE_FIELD_NUMBER: _ClassVar[int]
    END_MINUTE_FIELD_NUMBER: _ClassVar[int]
    day: _containers.RepeatedScalarFieldContainer[int]
    begin_minute: int
    end_minute: int
    def __init__(self, day: _Optional[_Iterable[int]] = ..., begin_minute: _Optional[int] = ..., end_minute: _Optional[int] = ...) -> None: ...

class FreezeSpan(_message.Message):
    __slots__ = ("begin_s", "end_s", "reason", "repairs")
    BEGIN_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REPAIRS_FIELD_NUMBER: _ClassVar[int]
    begin_s: float
    end_s: float
    reason: str
    repairs: bool
    def __init__(self, begin_s: _Optional[float] = ..., end_s: _Optional[float] = ..., reason: _Optional[str] = ..., repairs: _Optional[bool] = ...) -> None: ...

class LedgerLocations(_message.Message):
    __slots__ = ("location",)
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    location: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, location: _Optional[_Iterable[str]] = ...) -> None: ...

class LedgerDecision(_message.Message):
    __slots__ = ("now_s", "wall_offset_s", "closed", "barred", "confirmed", "refused", "change", "waits")
    class BarredEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    WALL_OFFSET_S_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    BARRED_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    now_s: float
    wall_offset_s: float
    closed: str
    barred: _containers.ScalarMap[str, str]
    confirmed: str
    refused: str
    change: _containers.RepeatedCompositeFieldContainer[LedgerChange]
    waits: LedgerWaits
    def __init__(self, now_s: _Optional[float] = ..., wall_offset_s: _Optional[float] = ..., closed: _Optional[str] = ..., barred: _Optional[_Mapping[str, str]] = ..., confirmed: _Optional[str] = ..., refused: _Optional[str] = ..., change: _Optional[_Iterable[_Union[LedgerChange, _Mapping]]] = ..., waits: _Optional[_Union[LedgerWaits, _Mapping]] = ...) -> None: ...

class LedgerChange(_message.Message):
    __slots__ = ("task_id", "event", "budget", "touched", "touches_more")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    TOUCHED_FIELD_NUMBER: _ClassVar[int]
    TOUCHES_MORE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    event: str
    budget: _containers.RepeatedCompositeFieldContainer[BudgetFact]
    touched: _containers.RepeatedCompositeFieldContainer[TouchedInstance]
    touches_more: bool
    def __init__(self, task_id: _Optional[str] = ..., event: _Optional[str] = ..., budget: _Optional[_Iterable[_Union[BudgetFact, _Mapping]]] = ..., touched: _Optional[_Iterable[_Union[TouchedInstance, _Mapping]]] = ..., touches_more: _Optional[bool] = ...) -> None: ...

class TouchedInstance(_message.Message):
    __slots__ = ("service", "host", "location")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    service: str
    host: str
    location: str
    def __init__(self, service: _Optional[str] = ..., host: _Optional[str] = ..., location: _Optional[str] = ...) -> None: ...

class BudgetFact(_message.Message):
    __slots__ = ("name", "total", "floor", "available", "needs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    total: int
    floor: int
    available: int
    needs: int
    def __init__(self, name: _Optional[str] = ..., total: _Optional[int] = ..., floor: _Optional[int] = ..., available: _Optional[int] = ..., needs: _Optional[int] = ...) -> None: ...

class LedgerWaits(_message.Message):
    __slots__ = ("wait",)
    WAIT_FIELD_NUMBER: _ClassVar[int]
    wait: _containers.RepeatedCompositeFieldContainer[LedgerWait]
    def __init__(self, wait: _Optional[_Iterable[_Union[LedgerWait, _Mapping]]] = ...) -> None: ...

class LedgerWait(_message.Message):
    __slots__ = ("unit", "obstacle", "keeps_place")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    OBSTACLE_FIELD_NUMBER: _ClassVar[int]
    KEEPS_PLACE_FIELD_NUMBER: _ClassVar[int]
    unit: str
    obstacle: _containers.RepeatedScalarFieldContainer[str]
    keeps_place: bool
    def __init__(self, unit: _Optional[str] = ..., obstacle: _Optional[_Iterable[str]] = ..., keeps_place: _Optional[bool] = ...) -> None: ...
