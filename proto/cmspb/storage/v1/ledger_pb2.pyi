from cmspb.v1 import cms_pb2 as _cms_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Task(_message.Message):
    __slots__ = ("id", "order", "state", "action", "type", "issuer", "owner", "is_wire", "host", "instance", "group_id", "comment", "extra", "failure", "confirm", "already_running", "created_ms", "since_ms", "overdue_ms", "polls", "confirming", "confirmed", "note", "access", "need", "rollback", "fleet_group", "max_failures")
    ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    IS_WIRE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    ALREADY_RUNNING_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_MS_FIELD_NUMBER: _ClassVar[int]
    POLLS_FIELD_NUMBER: _ClassVar[int]
    CONFIRMING_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    ROLLBACK_FIELD_NUMBER: _ClassVar[int]
    FLEET_GROUP_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    id: str
    order: int
    state: str
    action: str
    type: str
    issuer: str
    owner: str
    is_wire: bool
    host: _containers.RepeatedScalarFieldContainer[str]
    instance: _containers.RepeatedCompositeFieldContainer[Instance]
    group_id: str
    comment: str
    extra: str
    failure: str
    confirm: bool
    already_running: bool
    created_ms: int
    since_ms: int
    overdue_ms: int
    polls: int
    confirming: str
    confirmed: str
    note: _containers.RepeatedCompositeFieldContainer[Note]
    access: str
    need: str
    rollback: bool
    fleet_group: str
    max_failures: int
    def __init__(self, id: _Optional[str] = ..., order: _Optional[int] = ..., state: _Optional[str] = ..., action: _Optional[str] = ..., type: _Optional[str] = ..., issuer: _Optional[str] = ..., owner: _Optional[str] = ..., is_wire: _Optional[bool] = ..., host: _Optional[_Iterable[str]] = ..., instance: _Optional[_Iterable[_Union[Instance, _Mapping]]] = ..., group_id: _Optional[str] = ..., comment: _Optional[str] = ..., extra: _Optional[str] = ..., failure: _Optional[str] = ..., confirm: _Optional[bool] = ..., already_running: _Optional[bool] = ..., created_ms: _Optional[int] = ..., since_ms: _Optional[int] = ..., overdue_ms: _Optional[int] = ..., polls: _Optional[int] = ..., confirming: _Optional[str] = ..., confirmed: _Optional[str] = ..., note: _Optional[_Iterable[_Union[Note, _Mapping]]] = ..., access: _Optional[str] = ..., need: _Optional[str] = ..., rollback: _Optional[bool] = ..., fleet_group: _Optional[str] = ..., max_failures: _Optional[int] = ...) -> None: ...

class Instance(_message.Message):
    __slots__ = ("location", "id")
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    location: str
    id: str
    def __init__(self, location: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class Note(_message.Message):
    __slots__ = ("by", "reason", "what", "at_ms")
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    by: str
    reason: str
    what: str
    at_ms: int
    def __init__(self, by: _Optional[str] = ..., reason: _Optional[str] = ..., what: _Optional[str] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("name", "service", "labels", "cluster", "min_ready", "max_unavailable", "reject_impossible", "by", "at_ms", "brief")
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
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    BRIEF_FIELD_NUMBER: _ClassVar[int]
    name: str
    service: str
    labels: _containers.ScalarMap[str, str]
    cluster: _containers.RepeatedScalarFieldContainer[str]
    min_ready: str
    max_unavailable: str
    reject_impossible: bool
    by: str
    at_ms: int
    brief: _cms_pb2.Brief
    def __init__(self, name: _Optional[str] = ..., service: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., cluster: _Optional[_Iterable[str]] = ..., min_ready: _Optional[str] = ..., max_unavailable: _Optional[str] = ..., reject_impossible: _Optional[bool] = ..., by: _Optional[str] = ..., at_ms: _Optional[int] = ..., brief: _Optional[_Union[_cms_pb2.Brief, _Mapping]] = ...) -> None: ...

class Windows(_message.Message):
    __slots__ = ("windows", "by", "at_ms")
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    windows: _cms_pb2.Windows
    by: str
    at_ms: int
    def __init__(self, windows: _Optional[_Union[_cms_pb2.Windows, _Mapping]] = ..., by: _Optional[str] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Ended(_message.Message):
    __slots__ = ("host", "instance", "at_ms")
    HOST_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    host: _containers.RepeatedScalarFieldContainer[str]
    instance: _containers.RepeatedCompositeFieldContainer[Instance]
    at_ms: int
    def __init__(self, host: _Optional[_Iterable[str]] = ..., instance: _Optional[_Iterable[_Union[Instance, _Mapping]]] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Ledger(_message.Message):
    __slots__ = ("decisions", "moving", "epoch")
    class Move(_message.Message):
        __slots__ = ("task_id", "order", "event")
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        ORDER_FIELD_NUMBER: _ClassVar[int]
        EVENT_FIELD_NUMBER: _ClassVar[int]
        task_id: str
        order: int
        event: str
        def __init__(self, task_id: _Optional[str] = ..., order: _Optional[int] = ..., event: _Optional[str] = ...) -> None: ...
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    MOVING_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    decisions: int
    moving: _containers.RepeatedCompositeFieldContainer[Ledger.Move]
    epoch: str
    def __init__(self, decisions: _Optional[int] = ..., moving: _Optional[_Iterable[_Union[Ledger.Move, _Mapping]]] = ..., epoch: _Optional[str] = ...) -> None: ...

class Declared(_message.Message):
    __slots__ = ("epoch", "by", "at_ms")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    by: str
    at_ms: int
    def __init__(self, epoch: _Optional[str] = ..., by: _Optional[str] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("task_id", "delete", "poll", "confirm", "extend", "put_budget", "delete_budget", "declare", "put_windows", "delete_windows", "expedite", "access")
    class Delete(_message.Message):
        __slots__ = ("by", "is_operator", "reason", "is_wire")
        BY_FIELD_NUMBER: _ClassVar[int]
        IS_OPERATOR_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        IS_WIRE_FIELD_NUMBER: _ClassVar[int]
        by: str
        is_operator: bool
        reason: str
        is_wire: bool
        def __init__(self, by: _Optional[str] = ..., is_operator: _Optional[bool] = ..., reason: _Optional[str] = ..., is_wire: _Optional[bool] = ...) -> None: ...
    class Poll(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Confirm(_message.Message):
        __slots__ = ("word", "by")
        WORD_FIELD_NUMBER: _ClassVar[int]
        BY_FIELD_NUMBER: _ClassVar[int]
        word: str
        by: str
        def __init__(self, word: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...
    class Extend(_message.Message):
        __slots__ = ("seconds", "by", "reason")
        SECONDS_FIELD_NUMBER: _ClassVar[int]
        BY_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        seconds: int
        by: str
        reason: str
        def __init__(self, seconds: _Optional[int] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...
    class Expedite(_message.Message):
        __slots__ = ("by", "reason")
        BY_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        by: str
        reason: str
        def __init__(self, by: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...
    class DeleteBudget(_message.Message):
        __slots__ = ("name",)
        NAME_FIELD_NUMBER: _ClassVar[int]
        name: str
        def __init__(self, name: _Optional[str] = ...) -> None: ...
    class Declare(_message.Message):
        __slots__ = ("issuer", "by")
        ISSUER_FIELD_NUMBER: _ClassVar[int]
        BY_FIELD_NUMBER: _ClassVar[int]
        issuer: str
        by: str
        def __init__(self, issuer: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    POLL_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    PUT_BUDGET_FIELD_NUMBER: _ClassVar[int]
    DELETE_BUDGET_FIELD_NUMBER: _ClassVar[int]
    DECLARE_FIELD_NUMBER: _ClassVar[int]
    PUT_WINDOWS_FIELD_NUMBER: _ClassVar[int]
    DELETE_WINDOWS_FIELD_NUMBER: _ClassVar[int]
    EXPEDITE_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    delete: Order.Delete
    poll: Order.Poll
    confirm: Order.Confirm
    extend: Order.Extend
    put_budget: Budget
    delete_budget: Order.DeleteBudget
    declare: Order.Declare
    put_windows: Windows
    delete_windows: str
    expedite: Order.Expedite
    access: str
    def __init__(self, task_id: _Optional[str] = ..., delete: _Optional[_Union[Order.Delete, _Mapping]] = ..., poll: _Optional[_Union[Order.Poll, _Mapping]] = ..., confirm: _Optional[_Union[Order.Confirm, _Mapping]] = ..., extend: _Optional[_Union[Order.Extend, _Mapping]] = ..., put_budget: _Optional[_Union[Budget, _Mapping]] = ..., delete_budget: _Optional[_Union[Order.DeleteBudget, _Mapping]] = ..., declare: _Optional[_Union[Order.Declare, _Mapping]] = ..., put_windows: _Optional[_Union[Windows, _Mapping]] = ..., delete_windows: _Optional[str] = ..., expedite: _Optional[_Union[Order.Expedite, _Mapping]] = ..., access: _Optional[str] = ...) -> None: ...
