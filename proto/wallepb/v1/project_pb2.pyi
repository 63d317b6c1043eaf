import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from wallepb.v1 import host_pb2 as _host_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEVERITY_UNSPECIFIED: _ClassVar[Severity]
    SEVERITY_INFO: _ClassVar[Severity]
    SEVERITY_WARNING: _ClassVar[Severity]
    SEVERITY_ERROR: _ClassVar[Severity]
    SEVERITY_CRITICAL: _ClassVar[Severity]

class ScenarioKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCENARIO_KIND_UNSPECIFIED: _ClassVar[ScenarioKind]
    SCENARIO_KIND_SWITCH_MAINTENANCE: _ClassVar[ScenarioKind]
    SCENARIO_KIND_REBOOT: _ClassVar[ScenarioKind]
    SCENARIO_KIND_PROFILE: _ClassVar[ScenarioKind]
    SCENARIO_KIND_DECOMMISSION: _ClassVar[ScenarioKind]

class ScenarioStage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCENARIO_STAGE_UNSPECIFIED: _ClassVar[ScenarioStage]
    SCENARIO_STAGE_ASKING: _ClassVar[ScenarioStage]
    SCENARIO_STAGE_CONFIRMING: _ClassVar[ScenarioStage]
    SCENARIO_STAGE_WORKING: _ClassVar[ScenarioStage]
    SCENARIO_STAGE_RETURNING: _ClassVar[ScenarioStage]
    SCENARIO_STAGE_FINISHED: _ClassVar[ScenarioStage]
    SCENARIO_STAGE_REFUSED: _ClassVar[ScenarioStage]
    SCENARIO_STAGE_CANCELLED: _ClassVar[ScenarioStage]
    SCENARIO_STAGE_PAUSED: _ClassVar[ScenarioStage]
SEVERITY_UNSPECIFIED: Severity
SEVERITY_INFO: Severity
SEVERITY_WARNING: Severity
SEVERITY_ERROR: Severity
SEVERITY_CRITICAL: Severity
SCENARIO_KIND_UNSPECIFIED: ScenarioKind
SCENARIO_KIND_SWITCH_MAINTENANCE: ScenarioKind
SCENARIO_KIND_REBOOT: ScenarioKind
SCENARIO_KIND_PROFILE: ScenarioKind
SCENARIO_KIND_DECOMMISSION: ScenarioKind
SCENARIO_STAGE_UNSPECIFIED: ScenarioStage
SCENARIO_STAGE_ASKING: ScenarioStage
SCENARIO_STAGE_CONFIRMING: ScenarioStage
SCENARIO_STAGE_WORKING: ScenarioStage
SCENARIO_STAGE_RETURNING: ScenarioStage
SCENARIO_STAGE_FINISHED: ScenarioStage
SCENARIO_STAGE_REFUSED: ScenarioStage
SCENARIO_STAGE_CANCELLED: ScenarioStage
SCENARIO_STAGE_PAUSED: ScenarioStage

class Project(_message.Message):
    __slots__ = ("id", "name", "owners", "cms", "limits", "scheme", "notifications", "limits_reason", "limits_by", "max_repairs_per_host")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Limit
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Limit, _Mapping]] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    CMS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_REASON_FIELD_NUMBER: _ClassVar[int]
    LIMITS_BY_FIELD_NUMBER: _ClassVar[int]
    MAX_REPAIRS_PER_HOST_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    owners: _containers.RepeatedScalarFieldContainer[str]
    cms: _containers.RepeatedCompositeFieldContainer[Cms]
    limits: _containers.MessageMap[str, Limit]
    scheme: _containers.RepeatedCompositeFieldContainer[Scheme]
    notifications: Notifications
    limits_reason: str
    limits_by: str
    max_repairs_per_host: Limit
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., owners: _Optional[_Iterable[str]] = ..., cms: _Optional[_Iterable[_Union[Cms, _Mapping]]] = ..., limits: _Optional[_Mapping[str, Limit]] = ..., scheme: _Optional[_Iterable[_Union[Scheme, _Mapping]]] = ..., notifications: _Optional[_Union[Notifications, _Mapping]] = ..., limits_reason: _Optional[str] = ..., limits_by: _Optional[str] = ..., max_repairs_per_host: _Optional[_Union[Limit, _Mapping]] = ...) -> None: ...

class Cms(_message.Message):
    __slots__ = ("url", "version", "tvm_app_id", "max_busy_hosts")
    URL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TVM_APP_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_BUSY_HOSTS_FIELD_NUMBER: _ClassVar[int]
    url: str
    version: str
    tvm_app_id: str
    max_busy_hosts: int
    def __init__(self, url: _Optional[str] = ..., version: _Optional[str] = ..., tvm_app_id: _Optional[str] = ..., max_busy_hosts: _Optional[int] = ...) -> None: ...

class Limit(_message.Message):
    __slots__ = ("pair",)
    PAIR_FIELD_NUMBER: _ClassVar[int]
    pair: _containers.RepeatedCompositeFieldContainer[PeriodCount]
    def __init__(self, pair: _Optional[_Iterable[_Union[PeriodCount, _Mapping]]] = ...) -> None: ...

class PeriodCount(_message.Message):
    __slots__ = ("period_s", "count")
    PERIOD_S_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    period_s: int
    count: int
    def __init__(self, period_s: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Scheme(_message.Message):
    __slots__ = ("check", "step")
    CHECK_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    check: str
    step: _containers.RepeatedScalarFieldContainer[_host_pb2.OperationKind]
    def __init__(self, check: _Optional[str] = ..., step: _Optional[_Iterable[_Union[_host_pb2.OperationKind, str]]] = ...) -> None: ...

class Notifications(_message.Message):
    __slots__ = ("recipient",)
    RECIPIENT_FIELD_NUMBER: _ClassVar[int]
    recipient: _containers.RepeatedCompositeFieldContainer[Recipient]
    def __init__(self, recipient: _Optional[_Iterable[_Union[Recipient, _Mapping]]] = ...) -> None: ...

class Recipient(_message.Message):
    __slots__ = ("severity", "address")
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    severity: Severity
    address: str
    def __init__(self, severity: _Optional[_Union[Severity, str]] = ..., address: _Optional[str] = ...) -> None: ...

class Fuse(_message.Message):
    __slots__ = ("id", "healing", "dns", "mark", "credit", "switching")
    ID_FIELD_NUMBER: _ClassVar[int]
    HEALING_FIELD_NUMBER: _ClassVar[int]
    DNS_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    SWITCHING_FIELD_NUMBER: _ClassVar[int]
    id: str
    healing: Switch
    dns: Switch
    mark: _containers.RepeatedCompositeFieldContainer[Mark]
    credit: _containers.RepeatedCompositeFieldContainer[Credit]
    switching: _containers.RepeatedCompositeFieldContainer[Switching]
    def __init__(self, id: _Optional[str] = ..., healing: _Optional[_Union[Switch, _Mapping]] = ..., dns: _Optional[_Union[Switch, _Mapping]] = ..., mark: _Optional[_Iterable[_Union[Mark, _Mapping]]] = ..., credit: _Optional[_Iterable[_Union[Credit, _Mapping]]] = ..., switching: _Optional[_Iterable[_Union[Switching, _Mapping]]] = ...) -> None: ...

class FuseLimits(_message.Message):
    __slots__ = ("fuse", "limits")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Limit
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Limit, _Mapping]] = ...) -> None: ...
    FUSE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    fuse: str
    limits: _containers.MessageMap[str, Limit]
    def __init__(self, fuse: _Optional[str] = ..., limits: _Optional[_Mapping[str, Limit]] = ...) -> None: ...

class FusesStart(_message.Message):
    __slots__ = ("limits", "fuse")
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    FUSE_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.RepeatedCompositeFieldContainer[FuseLimits]
    fuse: _containers.RepeatedCompositeFieldContainer[Fuse]
    def __init__(self, limits: _Optional[_Iterable[_Union[FuseLimits, _Mapping]]] = ..., fuse: _Optional[_Iterable[_Union[Fuse, _Mapping]]] = ...) -> None: ...

class FuseEntry(_message.Message):
    __slots__ = ("start", "limits", "fuse")
    START_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    FUSE_FIELD_NUMBER: _ClassVar[int]
    start: FusesStart
    limits: FuseLimits
    fuse: Fuse
    def __init__(self, start: _Optional[_Union[FusesStart, _Mapping]] = ..., limits: _Optional[_Union[FuseLimits, _Mapping]] = ..., fuse: _Optional[_Union[Fuse, _Mapping]] = ...) -> None: ...

class Switch(_message.Message):
    __slots__ = ("off", "tripped_by", "reason", "by", "time")
    OFF_FIELD_NUMBER: _ClassVar[int]
    TRIPPED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    off: bool
    tripped_by: str
    reason: str
    by: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, off: _Optional[bool] = ..., tripped_by: _Optional[str] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Mark(_message.Message):
    __slots__ = ("counter", "host", "at_ms", "time", "by_credit", "operation_id", "credit_until_ms")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    BY_CREDIT_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    CREDIT_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    counter: str
    host: str
    at_ms: int
    time: _timestamp_pb2.Timestamp
    by_credit: bool
    operation_id: str
    credit_until_ms: int
    def __init__(self, counter: _Optional[str] = ..., host: _Optional[str] = ..., at_ms: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., by_credit: _Optional[bool] = ..., operation_id: _Optional[str] = ..., credit_until_ms: _Optional[int] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("counter", "left", "until_ms")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    counter: str
    left: int
    until_ms: int
    def __init__(self, counter: _Optional[str] = ..., left: _Optional[int] = ..., until_ms: _Optional[int] = ...) -> None: ...

class Switching(_message.Message):
    __slots__ = ("time", "automation", "off", "by", "reason", "marks_cleared", "credit", "at_ms", "host")
    TIME_FIELD_NUMBER: _ClassVar[int]
    AUTOMATION_FIELD_NUMBER: _ClassVar[int]
    OFF_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MARKS_CLEARED_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    automation: str
    off: bool
    by: str
    reason: str
    marks_cleared: int
    credit: _containers.RepeatedCompositeFieldContainer[Credit]
    at_ms: int
    host: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., automation: _Optional[str] = ..., off: _Optional[bool] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., marks_cleared: _Optional[int] = ..., credit: _Optional[_Iterable[_Union[Credit, _Mapping]]] = ..., at_ms: _Optional[int] = ..., host: _Optional[str] = ...) -> None: ...

class Scenario(_message.Message):
    __slots__ = ("id", "kind", "switch", "dc", "ticket", "by", "reason", "stage", "since_ms", "host", "group_id", "at_once", "message", "created", "ending", "access", "wave_size", "by_domain", "max_failures", "verify")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    DC_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    AT_ONCE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    WAVE_SIZE_FIELD_NUMBER: _ClassVar[int]
    BY_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: ScenarioKind
    switch: str
    dc: str
    ticket: str
    by: str
    reason: str
    stage: ScenarioStage
    since_ms: int
    host: _containers.RepeatedCompositeFieldContainer[ScenarioHost]
    group_id: str
    at_once: int
    message: str
    created: _timestamp_pb2.Timestamp
    ending: ScenarioStage
    access: str
    wave_size: str
    by_domain: str
    max_failures: str
    verify: str
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[ScenarioKind, str]] = ..., switch: _Optional[str] = ..., dc: _Optional[str] = ..., ticket: _Optional[str] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., stage: _Optional[_Union[ScenarioStage, str]] = ..., since_ms: _Optional[int] = ..., host: _Optional[_Iterable[_Union[ScenarioHost, _Mapping]]] = ..., group_id: _Optional[str] = ..., at_once: _Optional[int] = ..., message: _Optional[str] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ending: _Optional[_Union[ScenarioStage, str]] = ..., access: _Optional[str] = ..., wave_size: _Optional[str] = ..., by_domain: _Optional[str] = ..., max_failures: _Optional[str] = ..., verify: _Optional[str] = ...) -> None: ...

class ScenarioHost(_message.Message):
    __slots__ = ("name", "task", "not_needed", "by_hand", "operation_id", "outcome", "agreed", "ended_ms", "problem", "ready_before", "accepted", "domain")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    NOT_NEEDED_FIELD_NUMBER: _ClassVar[int]
    BY_HAND_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    AGREED_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    READY_BEFORE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    name: str
    task: _containers.RepeatedCompositeFieldContainer[_host_pb2.Task]
    not_needed: str
    by_hand: _containers.RepeatedScalarFieldContainer[str]
    operation_id: str
    outcome: _host_pb2.Outcome
    agreed: _containers.RepeatedCompositeFieldContainer[HandAgreement]
    ended_ms: int
    problem: str
    ready_before: _containers.RepeatedScalarFieldContainer[str]
    accepted: bool
    domain: str
    def __init__(self, name: _Optional[str] = ..., task: _Optional[_Iterable[_Union[_host_pb2.Task, _Mapping]]] = ..., not_needed: _Optional[str] = ..., by_hand: _Optional[_Iterable[str]] = ..., operation_id: _Optional[str] = ..., outcome: _Optional[_Union[_host_pb2.Outcome, str]] = ..., agreed: _Optional[_Iterable[_Union[HandAgreement, _Mapping]]] = ..., ended_ms: _Optional[int] = ..., problem: _Optional[str] = ..., ready_before: _Optional[_Iterable[str]] = ..., accepted: _Optional[bool] = ..., domain: _Optional[str] = ...) -> None: ...

class HandAgreement(_message.Message):
    __slots__ = ("cms", "by", "reason", "time")
    CMS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    cms: str
    by: str
    reason: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, cms: _Optional[str] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class DefaultCmsTasks(_message.Message):
    __slots__ = ("project", "task")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    project: str
    task: _containers.RepeatedCompositeFieldContainer[DefaultCmsTask]
    def __init__(self, project: _Optional[str] = ..., task: _Optional[_Iterable[_Union[DefaultCmsTask, _Mapping]]] = ...) -> None: ...

class DefaultCmsTask(_message.Message):
    __slots__ = ("id", "host", "action", "granted", "content")
    ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    host: _containers.RepeatedScalarFieldContainer[str]
    action: str
    granted: bool
    content: str
    def __init__(self, id: _Optional[str] = ..., host: _Optional[_Iterable[str]] = ..., action: _Optional[str] = ..., granted: _Optional[bool] = ..., content: _Optional[str] = ...) -> None: ...

class Restored(_message.Message):
    __slots__ = ("project", "epoch", "listed", "task", "looked", "by", "reason", "evidence")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LISTED_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    LOOKED_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    project: str
    epoch: str
    listed: _containers.RepeatedScalarFieldContainer[str]
    task: _containers.RepeatedCompositeFieldContainer[UnknownTask]
    looked: bool
    by: str
    reason: str
    evidence: str
    def __init__(self, project: _Optional[str] = ..., epoch: _Optional[str] = ..., listed: _Optional[_Iterable[str]] = ..., task: _Optional[_Iterable[_Union[UnknownTask, _Mapping]]] = ..., looked: _Optional[bool] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., evidence: _Optional[str] = ...) -> None: ...

class UnknownTask(_message.Message):
    __slots__ = ("cms", "id", "host")
    CMS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    cms: str
    id: str
    host: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, cms: _Optional[str] = ..., id: _Optional[str] = ..., host: _Optional[_Iterable[str]] = ...) -> None: ...

class LedgerTime(_message.Message):
    __slots__ = ("at_ms",)
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    def __init__(self, at_ms: _Optional[int] = ...) -> None: ...

class NoticeRecord(_message.Message):
    __slots__ = ("id", "severity", "project", "host", "text", "first", "last", "count", "pending", "due_ms", "last_ms", "rounds", "problem", "acknowledged_by", "acknowledged_reason", "acknowledged", "owed_since_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    DUE_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_MS_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_BY_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_REASON_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    OWED_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    severity: Severity
    project: str
    host: str
    text: str
    first: _timestamp_pb2.Timestamp
    last: _timestamp_pb2.Timestamp
    count: int
    pending: _containers.RepeatedScalarFieldContainer[str]
    due_ms: int
    last_ms: int
    rounds: int
    problem: str
    acknowledged_by: str
    acknowledged_reason: str
    acknowledged: _timestamp_pb2.Timestamp
    owed_since_ms: int
    def __init__(self, id: _Optional[str] = ..., severity: _Optional[_Union[Severity, str]] = ..., project: _Optional[str] = ..., host: _Optional[str] = ..., text: _Optional[str] = ..., first: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., count: _Optional[int] = ..., pending: _Optional[_Iterable[str]] = ..., due_ms: _Optional[int] = ..., last_ms: _Optional[int] = ..., rounds: _Optional[int] = ..., problem: _Optional[str] = ..., acknowledged_by: _Optional[str] = ..., acknowledged_reason: _Optional[str] = ..., acknowledged: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., owed_since_ms: _Optional[int] = ...) -> None: ...

class InstallationWord(_message.Message):
    __slots__ = ("word",)
    WORD_FIELD_NUMBER: _ClassVar[int]
    word: str
    def __init__(self, word: _Optional[str] = ...) -> None: ...
