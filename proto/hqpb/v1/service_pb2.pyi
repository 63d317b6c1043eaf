import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from hqpb.v1 import instance_pb2 as _instance_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReadConsistency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    READ_CONSISTENCY_UNSPECIFIED: _ClassVar[ReadConsistency]
    READ_CONSISTENCY_STRONG: _ClassVar[ReadConsistency]

class EpochTrust(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EPOCH_TRUST_UNSPECIFIED: _ClassVar[EpochTrust]
    EPOCH_TRUST_DOUBTED: _ClassVar[EpochTrust]
    EPOCH_TRUST_CONFIRMED: _ClassVar[EpochTrust]

class ReadinessFilter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    READINESS_FILTER_UNSPECIFIED: _ClassVar[ReadinessFilter]
    READINESS_FILTER_READY: _ClassVar[ReadinessFilter]
    READINESS_FILTER_NOT_READY: _ClassVar[ReadinessFilter]

class AllocationFilter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALLOCATION_FILTER_UNSPECIFIED: _ClassVar[AllocationFilter]
    ALLOCATION_FILTER_ALLOCATED: _ClassVar[AllocationFilter]
    ALLOCATION_FILTER_NOT_ALLOCATED: _ClassVar[AllocationFilter]

class LabelOperator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LABEL_OPERATOR_UNSPECIFIED: _ClassVar[LabelOperator]
    LABEL_OPERATOR_IN: _ClassVar[LabelOperator]
    LABEL_OPERATOR_NOT_IN: _ClassVar[LabelOperator]
    LABEL_OPERATOR_EXISTS: _ClassVar[LabelOperator]
    LABEL_OPERATOR_DOES_NOT_EXIST: _ClassVar[LabelOperator]

class AgentFilter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGENT_FILTER_UNSPECIFIED: _ClassVar[AgentFilter]
    AGENT_FILTER_SILENT: _ClassVar[AgentFilter]
    AGENT_FILTER_NOT_SILENT: _ClassVar[AgentFilter]

class ApplyOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPLY_OUTCOME_UNSPECIFIED: _ClassVar[ApplyOutcome]
    APPLY_OUTCOME_CREATED: _ClassVar[ApplyOutcome]
    APPLY_OUTCOME_UPDATED: _ClassVar[ApplyOutcome]
    APPLY_OUTCOME_UNCHANGED: _ClassVar[ApplyOutcome]

class CountGroup(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COUNT_GROUP_UNSPECIFIED: _ClassVar[CountGroup]
    COUNT_GROUP_SERVICE: _ClassVar[CountGroup]
    COUNT_GROUP_NODE: _ClassVar[CountGroup]
    COUNT_GROUP_REVISION: _ClassVar[CountGroup]
    COUNT_GROUP_REASON: _ClassVar[CountGroup]

class WatchKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WATCH_KIND_UNSPECIFIED: _ClassVar[WatchKind]
    WATCH_KIND_SNAPSHOT: _ClassVar[WatchKind]
    WATCH_KIND_SYNCED: _ClassVar[WatchKind]
    WATCH_KIND_EVENTS: _ClassVar[WatchKind]
    WATCH_KIND_BOOKMARK: _ClassVar[WatchKind]
    WATCH_KIND_RESYNC: _ClassVar[WatchKind]

class GuardOverrideKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GUARD_OVERRIDE_KIND_UNSPECIFIED: _ClassVar[GuardOverrideKind]
    GUARD_OVERRIDE_KIND_RELEASE: _ClassVar[GuardOverrideKind]
    GUARD_OVERRIDE_KIND_FORCE: _ClassVar[GuardOverrideKind]
READ_CONSISTENCY_UNSPECIFIED: ReadConsistency
READ_CONSISTENCY_STRONG: ReadConsistency
EPOCH_TRUST_UNSPECIFIED: EpochTrust
EPOCH_TRUST_DOUBTED: EpochTrust
EPOCH_TRUST_CONFIRMED: EpochTrust
READINESS_FILTER_UNSPECIFIED: ReadinessFilter
READINESS_FILTER_READY: ReadinessFilter
READINESS_FILTER_NOT_READY: ReadinessFilter
ALLOCATION_FILTER_UNSPECIFIED: AllocationFilter
ALLOCATION_FILTER_ALLOCATED: AllocationFilter
ALLOCATION_FILTER_NOT_ALLOCATED: AllocationFilter
LABEL_OPERATOR_UNSPECIFIED: LabelOperator
LABEL_OPERATOR_IN: LabelOperator
LABEL_OPERATOR_NOT_IN: LabelOperator
LABEL_OPERATOR_EXISTS: LabelOperator
LABEL_OPERATOR_DOES_NOT_EXIST: LabelOperator
AGENT_FILTER_UNSPECIFIED: AgentFilter
AGENT_FILTER_SILENT: AgentFilter
AGENT_FILTER_NOT_SILENT: AgentFilter
APPLY_OUTCOME_UNSPECIFIED: ApplyOutcome
APPLY_OUTCOME_CREATED: ApplyOutcome
APPLY_OUTCOME_UPDATED: ApplyOutcome
APPLY_OUTCOME_UNCHANGED: ApplyOutcome
COUNT_GROUP_UNSPECIFIED: CountGroup
COUNT_GROUP_SERVICE: CountGroup
COUNT_GROUP_NODE: CountGroup
COUNT_GROUP_REVISION: CountGroup
COUNT_GROUP_REASON: CountGroup
WATCH_KIND_UNSPECIFIED: WatchKind
WATCH_KIND_SNAPSHOT: WatchKind
WATCH_KIND_SYNCED: WatchKind
WATCH_KIND_EVENTS: WatchKind
WATCH_KIND_BOOKMARK: WatchKind
WATCH_KIND_RESYNC: WatchKind
GUARD_OVERRIDE_KIND_UNSPECIFIED: GuardOverrideKind
GUARD_OVERRIDE_KIND_RELEASE: GuardOverrideKind
GUARD_OVERRIDE_KIND_FORCE: GuardOverrideKind

class ReadOptions(_message.Message):
    __slots__ = ("min_version", "epoch", "consistency", "require_all_locations", "allow_last_good", "require_trusted")
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    REQUIRE_ALL_LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_LAST_GOOD_FIELD_NUMBER: _ClassVar[int]
    REQUIRE_TRUSTED_FIELD_NUMBER: _ClassVar[int]
    min_version: int
    epoch: str
    consistency: ReadConsistency
    require_all_locations: bool
    allow_last_good: bool
    require_trusted: bool
    def __init__(self, min_version: _Optional[int] = ..., epoch: _Optional[str] = ..., consistency: _Optional[_Union[ReadConsistency, str]] = ..., require_all_locations: _Optional[bool] = ..., allow_last_good: _Optional[bool] = ..., require_trusted: _Optional[bool] = ...) -> None: ...

class Source(_message.Message):
    __slots__ = ("cluster", "replica", "epoch", "version", "staleness", "stale", "error", "quarantined", "trust")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    replica: str
    epoch: str
    version: int
    staleness: _duration_pb2.Duration
    stale: bool
    error: str
    quarantined: _containers.RepeatedScalarFieldContainer[str]
    trust: EpochTrust
    def __init__(self, cluster: _Optional[str] = ..., replica: _Optional[str] = ..., epoch: _Optional[str] = ..., version: _Optional[int] = ..., staleness: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., stale: _Optional[bool] = ..., error: _Optional[str] = ..., quarantined: _Optional[_Iterable[str]] = ..., trust: _Optional[_Union[EpochTrust, str]] = ...) -> None: ...

class InstanceFilter(_message.Message):
    __slots__ = ("instance_id", "service_id", "node_name", "revision_id", "cluster", "labels", "readiness", "allocated", "agent", "label_requirement")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    READINESS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LABEL_REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    instance_id: _containers.RepeatedScalarFieldContainer[str]
    service_id: _containers.RepeatedScalarFieldContainer[str]
    node_name: _containers.RepeatedScalarFieldContainer[str]
    revision_id: _containers.RepeatedScalarFieldContainer[str]
    cluster: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    readiness: ReadinessFilter
    allocated: AllocationFilter
    agent: AgentFilter
    label_requirement: _containers.RepeatedCompositeFieldContainer[LabelRequirement]
    def __init__(self, instance_id: _Optional[_Iterable[str]] = ..., service_id: _Optional[_Iterable[str]] = ..., node_name: _Optional[_Iterable[str]] = ..., revision_id: _Optional[_Iterable[str]] = ..., cluster: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., readiness: _Optional[_Union[ReadinessFilter, str]] = ..., allocated: _Optional[_Union[AllocationFilter, str]] = ..., agent: _Optional[_Union[AgentFilter, str]] = ..., label_requirement: _Optional[_Iterable[_Union[LabelRequirement, _Mapping]]] = ...) -> None: ...

class LabelRequirement(_message.Message):
    __slots__ = ("key", "operator", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: LabelOperator
    value: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[_Union[LabelOperator, str]] = ..., value: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateInstanceRequest(_message.Message):
    __slots__ = ("instance", "request_id", "validate_only")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    instance: _instance_pb2.Instance
    request_id: str
    validate_only: bool
    def __init__(self, instance: _Optional[_Union[_instance_pb2.Instance, _Mapping]] = ..., request_id: _Optional[str] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class CreateInstanceResponse(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: _instance_pb2.Instance
    def __init__(self, instance: _Optional[_Union[_instance_pb2.Instance, _Mapping]] = ...) -> None: ...

class UpdateInstanceRequest(_message.Message):
    __slots__ = ("instance", "update_mask", "validate_only", "epoch", "service_id")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    instance: _instance_pb2.Instance
    update_mask: _field_mask_pb2.FieldMask
    validate_only: bool
    epoch: str
    service_id: str
    def __init__(self, instance: _Optional[_Union[_instance_pb2.Instance, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., validate_only: _Optional[bool] = ..., epoch: _Optional[str] = ..., service_id: _Optional[str] = ...) -> None: ...

class UpdateInstanceResponse(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: _instance_pb2.Instance
    def __init__(self, instance: _Optional[_Union[_instance_pb2.Instance, _Mapping]] = ...) -> None: ...

class DeleteInstanceRequest(_message.Message):
    __slots__ = ("id", "version", "epoch", "service_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    epoch: str
    service_id: str
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., epoch: _Optional[str] = ..., service_id: _Optional[str] = ...) -> None: ...

class DeleteInstanceResponse(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class ApplyInstancesRequest(_message.Message):
    __slots__ = ("instance", "validate_only", "epoch", "service_id")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    instance: _containers.RepeatedCompositeFieldContainer[_instance_pb2.Instance]
    validate_only: bool
    epoch: str
    service_id: str
    def __init__(self, instance: _Optional[_Iterable[_Union[_instance_pb2.Instance, _Mapping]]] = ..., validate_only: _Optional[bool] = ..., epoch: _Optional[str] = ..., service_id: _Optional[str] = ...) -> None: ...

class ApplyInstancesResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _containers.RepeatedCompositeFieldContainer[ApplyResult]
    def __init__(self, result: _Optional[_Iterable[_Union[ApplyResult, _Mapping]]] = ...) -> None: ...

class ApplyResult(_message.Message):
    __slots__ = ("id", "outcome", "version", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    outcome: ApplyOutcome
    version: int
    error: ItemError
    def __init__(self, id: _Optional[str] = ..., outcome: _Optional[_Union[ApplyOutcome, str]] = ..., version: _Optional[int] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...

class ItemError(_message.Message):
    __slots__ = ("code", "reason", "message", "field", "current_version")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    CURRENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    field: str
    current_version: int
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., field: _Optional[str] = ..., current_version: _Optional[int] = ...) -> None: ...

class PutRevisionRequest(_message.Message):
    __slots__ = ("instance_id", "revision", "version", "epoch", "update_mask", "validate_only", "service_id")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    revision: _instance_pb2.InstanceRevision
    version: int
    epoch: str
    update_mask: _field_mask_pb2.FieldMask
    validate_only: bool
    service_id: str
    def __init__(self, instance_id: _Optional[str] = ..., revision: _Optional[_Union[_instance_pb2.InstanceRevision, _Mapping]] = ..., version: _Optional[int] = ..., epoch: _Optional[str] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., validate_only: _Optional[bool] = ..., service_id: _Optional[str] = ...) -> None: ...

class PutRevisionResponse(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: _instance_pb2.Instance
    def __init__(self, instance: _Optional[_Union[_instance_pb2.Instance, _Mapping]] = ...) -> None: ...

class DeleteRevisionRequest(_message.Message):
    __slots__ = ("instance_id", "revision_id", "version", "epoch", "service_id")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    revision_id: str
    version: int
    epoch: str
    service_id: str
    def __init__(self, instance_id: _Optional[str] = ..., revision_id: _Optional[str] = ..., version: _Optional[int] = ..., epoch: _Optional[str] = ..., service_id: _Optional[str] = ...) -> None: ...

class DeleteRevisionResponse(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: _instance_pb2.Instance
    def __init__(self, instance: _Optional[_Union[_instance_pb2.Instance, _Mapping]] = ...) -> None: ...

class GetInstanceRequest(_message.Message):
    __slots__ = ("id", "field_mask", "read")
    ID_FIELD_NUMBER: _ClassVar[int]
    FIELD_MASK_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    id: str
    field_mask: _field_mask_pb2.FieldMask
    read: ReadOptions
    def __init__(self, id: _Optional[str] = ..., field_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., read: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class GetInstanceResponse(_message.Message):
    __slots__ = ("instance", "sources")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    instance: _instance_pb2.Instance
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    def __init__(self, instance: _Optional[_Union[_instance_pb2.Instance, _Mapping]] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ...) -> None: ...

class FindInstancesRequest(_message.Message):
    __slots__ = ("filter", "field_mask", "page_size", "page_token", "read")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    FIELD_MASK_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    filter: InstanceFilter
    field_mask: _field_mask_pb2.FieldMask
    page_size: int
    page_token: str
    read: ReadOptions
    def __init__(self, filter: _Optional[_Union[InstanceFilter, _Mapping]] = ..., field_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., read: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class FindInstancesResponse(_message.Message):
    __slots__ = ("instances", "next_page_token", "sources")
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    instances: _containers.RepeatedCompositeFieldContainer[_instance_pb2.Instance]
    next_page_token: str
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    def __init__(self, instances: _Optional[_Iterable[_Union[_instance_pb2.Instance, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ...) -> None: ...

class CountInstancesRequest(_message.Message):
    __slots__ = ("filter", "group_by", "read")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    filter: InstanceFilter
    group_by: CountGroup
    read: ReadOptions
    def __init__(self, filter: _Optional[_Union[InstanceFilter, _Mapping]] = ..., group_by: _Optional[_Union[CountGroup, str]] = ..., read: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class CountInstancesResponse(_message.Message):
    __slots__ = ("groups", "sources")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[InstanceCount]
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    def __init__(self, groups: _Optional[_Iterable[_Union[InstanceCount, _Mapping]]] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ...) -> None: ...

class InstanceCount(_message.Message):
    __slots__ = ("key", "total", "ready", "unknown", "not_wanted")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    NOT_WANTED_FIELD_NUMBER: _ClassVar[int]
    key: str
    total: int
    ready: int
    unknown: int
    not_wanted: int
    def __init__(self, key: _Optional[str] = ..., total: _Optional[int] = ..., ready: _Optional[int] = ..., unknown: _Optional[int] = ..., not_wanted: _Optional[int] = ...) -> None: ...

class ListSilencesRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token", "read")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    filter: InstanceFilter
    page_size: int
    page_token: str
    read: ReadOptions
    def __init__(self, filter: _Optional[_Union[InstanceFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., read: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class ListSilencesResponse(_message.Message):
    __slots__ = ("silences", "next_page_token", "sources", "report_interval", "changed_version")
    SILENCES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    REPORT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    CHANGED_VERSION_FIELD_NUMBER: _ClassVar[int]
    silences: _containers.RepeatedCompositeFieldContainer[InstanceSilence]
    next_page_token: str
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    report_interval: _duration_pb2.Duration
    changed_version: int
    def __init__(self, silences: _Optional[_Iterable[_Union[InstanceSilence, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., report_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., changed_version: _Optional[int] = ...) -> None: ...

class InstanceSilence(_message.Message):
    __slots__ = ("instance_id", "uid", "silent_ms", "node_suspended", "report_interval_ms")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    SILENT_MS_FIELD_NUMBER: _ClassVar[int]
    NODE_SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    REPORT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    uid: int
    silent_ms: int
    node_suspended: bool
    report_interval_ms: int
    def __init__(self, instance_id: _Optional[str] = ..., uid: _Optional[int] = ..., silent_ms: _Optional[int] = ..., node_suspended: _Optional[bool] = ..., report_interval_ms: _Optional[int] = ...) -> None: ...

class WatchInstancesRequest(_message.Message):
    __slots__ = ("filter", "resume_token", "bookmark_interval")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    BOOKMARK_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    filter: InstanceFilter
    resume_token: str
    bookmark_interval: _duration_pb2.Duration
    def __init__(self, filter: _Optional[_Union[InstanceFilter, _Mapping]] = ..., resume_token: _Optional[str] = ..., bookmark_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchInstancesResponse(_message.Message):
    __slots__ = ("kind", "events", "resume_token", "sources", "reason", "collapsed")
    KIND_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    COLLAPSED_FIELD_NUMBER: _ClassVar[int]
    kind: WatchKind
    events: _containers.RepeatedCompositeFieldContainer[WatchEvent]
    resume_token: str
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    reason: str
    collapsed: bool
    def __init__(self, kind: _Optional[_Union[WatchKind, str]] = ..., events: _Optional[_Iterable[_Union[WatchEvent, _Mapping]]] = ..., resume_token: _Optional[str] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., reason: _Optional[str] = ..., collapsed: _Optional[bool] = ...) -> None: ...

class WatchEvent(_message.Message):
    __slots__ = ("version", "put", "delete", "left")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    version: int
    put: _instance_pb2.Instance
    delete: InstanceRef
    left: InstanceRef
    def __init__(self, version: _Optional[int] = ..., put: _Optional[_Union[_instance_pb2.Instance, _Mapping]] = ..., delete: _Optional[_Union[InstanceRef, _Mapping]] = ..., left: _Optional[_Union[InstanceRef, _Mapping]] = ...) -> None: ...

class InstanceRef(_message.Message):
    __slots__ = ("id", "uid", "cluster")
    ID_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    id: str
    uid: int
    cluster: str
    def __init__(self, id: _Optional[str] = ..., uid: _Optional[int] = ..., cluster: _Optional[str] = ...) -> None: ...

class GetRevisionRequest(_message.Message):
    __slots__ = ("instance_id", "revision_id", "node")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    revision_id: str
    node: str
    def __init__(self, instance_id: _Optional[str] = ..., revision_id: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class GetRevisionResponse(_message.Message):
    __slots__ = ("revision", "version", "uid", "allocation", "source", "service_id")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    revision: _containers.RepeatedCompositeFieldContainer[_instance_pb2.InstanceRevision]
    version: int
    uid: int
    allocation: _instance_pb2.ResourceAllocation
    source: Source
    service_id: str
    def __init__(self, revision: _Optional[_Iterable[_Union[_instance_pb2.InstanceRevision, _Mapping]]] = ..., version: _Optional[int] = ..., uid: _Optional[int] = ..., allocation: _Optional[_Union[_instance_pb2.ResourceAllocation, _Mapping]] = ..., source: _Optional[_Union[Source, _Mapping]] = ..., service_id: _Optional[str] = ...) -> None: ...

class BeginReportingRequest(_message.Message):
    __slots__ = ("instance_id", "revision_id", "node")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    revision_id: str
    node: str
    def __init__(self, instance_id: _Optional[str] = ..., revision_id: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class BeginReportingResponse(_message.Message):
    __slots__ = ("incarnation", "report_interval", "uid", "liveness_timeout")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    REPORT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    LIVENESS_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    report_interval: _duration_pb2.Duration
    uid: int
    liveness_timeout: _duration_pb2.Duration
    def __init__(self, incarnation: _Optional[int] = ..., report_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., uid: _Optional[int] = ..., liveness_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class BeginReportingsRequest(_message.Message):
    __slots__ = ("begin",)
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    begin: _containers.RepeatedCompositeFieldContainer[BeginReportingRequest]
    def __init__(self, begin: _Optional[_Iterable[_Union[BeginReportingRequest, _Mapping]]] = ...) -> None: ...

class BeginReportingsResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _containers.RepeatedCompositeFieldContainer[BeginResult]
    def __init__(self, result: _Optional[_Iterable[_Union[BeginResult, _Mapping]]] = ...) -> None: ...

class BeginResult(_message.Message):
    __slots__ = ("answer", "error")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    answer: BeginReportingResponse
    error: ItemError
    def __init__(self, answer: _Optional[_Union[BeginReportingResponse, _Mapping]] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...

class ReportStatusRequest(_message.Message):
    __slots__ = ("instance_id", "uid", "node", "revision", "unsettled")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UNSETTLED_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    uid: int
    node: str
    revision: _instance_pb2.RevisionStatus
    unsettled: bool
    def __init__(self, instance_id: _Optional[str] = ..., uid: _Optional[int] = ..., node: _Optional[str] = ..., revision: _Optional[_Union[_instance_pb2.RevisionStatus, _Mapping]] = ..., unsettled: _Optional[bool] = ...) -> None: ...

class ReportStatusResponse(_message.Message):
    __slots__ = ("next_report_in",)
    NEXT_REPORT_IN_FIELD_NUMBER: _ClassVar[int]
    next_report_in: _duration_pb2.Duration
    def __init__(self, next_report_in: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReportStatusesRequest(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: _containers.RepeatedCompositeFieldContainer[ReportStatusRequest]
    def __init__(self, report: _Optional[_Iterable[_Union[ReportStatusRequest, _Mapping]]] = ...) -> None: ...

class ReportStatusesResponse(_message.Message):
    __slots__ = ("result", "next_report_in")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    NEXT_REPORT_IN_FIELD_NUMBER: _ClassVar[int]
    result: _containers.RepeatedCompositeFieldContainer[ReportResult]
    next_report_in: _duration_pb2.Duration
    def __init__(self, result: _Optional[_Iterable[_Union[ReportResult, _Mapping]]] = ..., next_report_in: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReportResult(_message.Message):
    __slots__ = ("error", "next_report_in")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NEXT_REPORT_IN_FIELD_NUMBER: _ClassVar[int]
    error: ItemError
    next_report_in: _duration_pb2.Duration
    def __init__(self, error: _Optional[_Union[ItemError, _Mapping]] = ..., next_report_in: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ExplainInstanceRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ExplainInstanceResponse(_message.Message):
    __slots__ = ("meta", "node_name", "ready", "revision", "guard", "sources", "summary", "node_suspended_until", "agent")
    META_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    GUARD_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    NODE_SUSPENDED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    meta: _instance_pb2.InstanceMeta
    node_name: str
    ready: _instance_pb2.Condition
    revision: _containers.RepeatedCompositeFieldContainer[RevisionExplanation]
    guard: GuardState
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    summary: str
    node_suspended_until: _timestamp_pb2.Timestamp
    agent: _instance_pb2.Condition
    def __init__(self, meta: _Optional[_Union[_instance_pb2.InstanceMeta, _Mapping]] = ..., node_name: _Optional[str] = ..., ready: _Optional[_Union[_instance_pb2.Condition, _Mapping]] = ..., revision: _Optional[_Iterable[_Union[RevisionExplanation, _Mapping]]] = ..., guard: _Optional[_Union[GuardState, _Mapping]] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., summary: _Optional[str] = ..., node_suspended_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., agent: _Optional[_Union[_instance_pb2.Condition, _Mapping]] = ...) -> None: ...

class RevisionExplanation(_message.Message):
    __slots__ = ("id", "target", "installed", "ready", "last_heartbeat_time", "heard_by", "silent_for", "deadline_in", "incarnation", "sequence", "summary", "postponed_because", "not_since", "report_interval", "timeout", "container")
    ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    HEARD_BY_FIELD_NUMBER: _ClassVar[int]
    SILENT_FOR_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_IN_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    POSTPONED_BECAUSE_FIELD_NUMBER: _ClassVar[int]
    NOT_SINCE_FIELD_NUMBER: _ClassVar[int]
    REPORT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    id: str
    target: _instance_pb2.RevisionTarget
    installed: _instance_pb2.Condition
    ready: _instance_pb2.Condition
    last_heartbeat_time: _timestamp_pb2.Timestamp
    heard_by: str
    silent_for: _duration_pb2.Duration
    deadline_in: _duration_pb2.Duration
    incarnation: int
    sequence: int
    summary: str
    postponed_because: str
    not_since: _timestamp_pb2.Timestamp
    report_interval: _duration_pb2.Duration
    timeout: _duration_pb2.Duration
    container: _containers.RepeatedCompositeFieldContainer[_instance_pb2.ContainerStatus]
    def __init__(self, id: _Optional[str] = ..., target: _Optional[_Union[_instance_pb2.RevisionTarget, str]] = ..., installed: _Optional[_Union[_instance_pb2.Condition, _Mapping]] = ..., ready: _Optional[_Union[_instance_pb2.Condition, _Mapping]] = ..., last_heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heard_by: _Optional[str] = ..., silent_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., deadline_in: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., incarnation: _Optional[int] = ..., sequence: _Optional[int] = ..., summary: _Optional[str] = ..., postponed_because: _Optional[str] = ..., not_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., report_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., container: _Optional[_Iterable[_Union[_instance_pb2.ContainerStatus, _Mapping]]] = ...) -> None: ...

class GuardState(_message.Message):
    __slots__ = ("holding", "since", "until", "expected", "silent", "nodes", "max_silent_share", "verdict", "override", "waiting")
    HOLDING_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    SILENT_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_SILENT_SHARE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    OVERRIDE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    holding: bool
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    expected: int
    silent: int
    nodes: int
    max_silent_share: float
    verdict: str
    override: GuardOverride
    waiting: int
    def __init__(self, holding: _Optional[bool] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expected: _Optional[int] = ..., silent: _Optional[int] = ..., nodes: _Optional[int] = ..., max_silent_share: _Optional[float] = ..., verdict: _Optional[str] = ..., override: _Optional[_Union[GuardOverride, _Mapping]] = ..., waiting: _Optional[int] = ...) -> None: ...

class GuardOverride(_message.Message):
    __slots__ = ("kind", "by", "reason", "since", "until")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    kind: GuardOverrideKind
    by: str
    reason: str
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    def __init__(self, kind: _Optional[_Union[GuardOverrideKind, str]] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
