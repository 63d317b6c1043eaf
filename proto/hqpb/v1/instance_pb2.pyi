import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RevisionTarget(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REVISION_TARGET_UNSPECIFIED: _ClassVar[RevisionTarget]
    REVISION_TARGET_INSTALLED: _ClassVar[RevisionTarget]
    REVISION_TARGET_READY: _ClassVar[RevisionTarget]
    REVISION_TARGET_CREATED: _ClassVar[RevisionTarget]

class Isolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ISOLATION_UNSPECIFIED: _ClassVar[Isolation]
    ISOLATION_AVAILABLE: _ClassVar[Isolation]
    ISOLATION_REQUIRED: _ClassVar[Isolation]

class RestartPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESTART_POLICY_UNSPECIFIED: _ClassVar[RestartPolicy]
    RESTART_POLICY_ALWAYS: _ClassVar[RestartPolicy]
    RESTART_POLICY_ON_FAILURE: _ClassVar[RestartPolicy]
    RESTART_POLICY_NEVER: _ClassVar[RestartPolicy]

class ConditionStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONDITION_STATUS_UNKNOWN: _ClassVar[ConditionStatus]
    CONDITION_STATUS_TRUE: _ClassVar[ConditionStatus]
    CONDITION_STATUS_FALSE: _ClassVar[ConditionStatus]
REVISION_TARGET_UNSPECIFIED: RevisionTarget
REVISION_TARGET_INSTALLED: RevisionTarget
REVISION_TARGET_READY: RevisionTarget
REVISION_TARGET_CREATED: RevisionTarget
ISOLATION_UNSPECIFIED: Isolation
ISOLATION_AVAILABLE: Isolation
ISOLATION_REQUIRED: Isolation
RESTART_POLICY_UNSPECIFIED: RestartPolicy
RESTART_POLICY_ALWAYS: RestartPolicy
RESTART_POLICY_ON_FAILURE: RestartPolicy
RESTART_POLICY_NEVER: RestartPolicy
CONDITION_STATUS_UNKNOWN: ConditionStatus
CONDITION_STATUS_TRUE: ConditionStatus
CONDITION_STATUS_FALSE: ConditionStatus

class Instance(_message.Message):
    __slots__ = ("meta", "spec", "status")
    META_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    meta: InstanceMeta
    spec: InstanceSpec
    status: InstanceStatus
    def __init__(self, meta: _Optional[_Union[InstanceMeta, _Mapping]] = ..., spec: _Optional[_Union[InstanceSpec, _Mapping]] = ..., status: _Optional[_Union[InstanceStatus, _Mapping]] = ...) -> None: ...

class InstanceMeta(_message.Message):
    __slots__ = ("id", "uid", "service_id", "cluster", "labels", "creation_time", "modification_time", "version", "status_version", "annotations")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREATION_TIME_FIELD_NUMBER: _ClassVar[int]
    MODIFICATION_TIME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATUS_VERSION_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    id: str
    uid: int
    service_id: str
    cluster: str
    labels: _containers.ScalarMap[str, str]
    creation_time: _timestamp_pb2.Timestamp
    modification_time: _timestamp_pb2.Timestamp
    version: int
    status_version: int
    annotations: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., uid: _Optional[int] = ..., service_id: _Optional[str] = ..., cluster: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., creation_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., modification_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[int] = ..., status_version: _Optional[int] = ..., annotations: _Optional[_Mapping[str, str]] = ...) -> None: ...

class InstanceSpec(_message.Message):
    __slots__ = ("resource_request", "allocation", "node_name", "revision", "liveness", "weight")
    RESOURCE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    LIVENESS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    resource_request: ResourceRequest
    allocation: ResourceAllocation
    node_name: str
    revision: _containers.RepeatedCompositeFieldContainer[InstanceRevision]
    liveness: LivenessSettings
    weight: int
    def __init__(self, resource_request: _Optional[_Union[ResourceRequest, _Mapping]] = ..., allocation: _Optional[_Union[ResourceAllocation, _Mapping]] = ..., node_name: _Optional[str] = ..., revision: _Optional[_Iterable[_Union[InstanceRevision, _Mapping]]] = ..., liveness: _Optional[_Union[LivenessSettings, _Mapping]] = ..., weight: _Optional[int] = ...) -> None: ...

class LivenessSettings(_message.Message):
    __slots__ = ("report_interval", "timeout")
    REPORT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    report_interval: _duration_pb2.Duration
    timeout: _duration_pb2.Duration
    def __init__(self, report_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ResourceRequest(_message.Message):
    __slots__ = ("cpu_millicores", "memory_bytes", "disk", "network_bytes_per_second", "port")
    CPU_MILLICORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    NETWORK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    cpu_millicores: int
    memory_bytes: int
    disk: _containers.RepeatedCompositeFieldContainer[DiskRequest]
    network_bytes_per_second: int
    port: _containers.RepeatedCompositeFieldContainer[PortRequest]
    def __init__(self, cpu_millicores: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., disk: _Optional[_Iterable[_Union[DiskRequest, _Mapping]]] = ..., network_bytes_per_second: _Optional[int] = ..., port: _Optional[_Iterable[_Union[PortRequest, _Mapping]]] = ...) -> None: ...

class DiskRequest(_message.Message):
    __slots__ = ("name", "size_bytes", "storage_class")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    STORAGE_CLASS_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    storage_class: str
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., storage_class: _Optional[str] = ...) -> None: ...

class PortRequest(_message.Message):
    __slots__ = ("name", "number")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    name: str
    number: int
    def __init__(self, name: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class ResourceAllocation(_message.Message):
    __slots__ = ("cpu_millicores", "memory_bytes", "disk", "network_bytes_per_second", "port", "host")
    CPU_MILLICORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    NETWORK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    cpu_millicores: int
    memory_bytes: int
    disk: _containers.RepeatedCompositeFieldContainer[DiskAllocation]
    network_bytes_per_second: int
    port: _containers.RepeatedCompositeFieldContainer[PortAllocation]
    host: str
    def __init__(self, cpu_millicores: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., disk: _Optional[_Iterable[_Union[DiskAllocation, _Mapping]]] = ..., network_bytes_per_second: _Optional[int] = ..., port: _Optional[_Iterable[_Union[PortAllocation, _Mapping]]] = ..., host: _Optional[str] = ...) -> None: ...

class DiskAllocation(_message.Message):
    __slots__ = ("name", "size_bytes", "storage_class", "path")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    STORAGE_CLASS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    storage_class: str
    path: str
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., storage_class: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class PortAllocation(_message.Message):
    __slots__ = ("name", "number")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    name: str
    number: int
    def __init__(self, name: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class InstanceRevision(_message.Message):
    __slots__ = ("id", "target", "container", "file", "package", "volume", "secret", "secret_count", "prepare")
    ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    PACKAGE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    SECRET_COUNT_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    id: str
    target: RevisionTarget
    container: _containers.RepeatedCompositeFieldContainer[Container]
    file: _containers.RepeatedCompositeFieldContainer[File]
    package: _containers.RepeatedCompositeFieldContainer[Package]
    volume: _containers.RepeatedCompositeFieldContainer[Volume]
    secret: _containers.RepeatedCompositeFieldContainer[SecretDescriptor]
    secret_count: int
    prepare: _containers.RepeatedCompositeFieldContainer[LifecycleHook]
    def __init__(self, id: _Optional[str] = ..., target: _Optional[_Union[RevisionTarget, str]] = ..., container: _Optional[_Iterable[_Union[Container, _Mapping]]] = ..., file: _Optional[_Iterable[_Union[File, _Mapping]]] = ..., package: _Optional[_Iterable[_Union[Package, _Mapping]]] = ..., volume: _Optional[_Iterable[_Union[Volume, _Mapping]]] = ..., secret: _Optional[_Iterable[_Union[SecretDescriptor, _Mapping]]] = ..., secret_count: _Optional[int] = ..., prepare: _Optional[_Iterable[_Union[LifecycleHook, _Mapping]]] = ...) -> None: ...

class Container(_message.Message):
    __slots__ = ("name", "command", "environment", "image", "layer", "readiness_check", "post_start", "pre_stop", "restart_policy", "stop_grace_period", "limit", "drain_period", "liveness_check", "startup_check", "stop_signal", "isolation")
    class EnvironmentEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    READINESS_CHECK_FIELD_NUMBER: _ClassVar[int]
    POST_START_FIELD_NUMBER: _ClassVar[int]
    PRE_STOP_FIELD_NUMBER: _ClassVar[int]
    RESTART_POLICY_FIELD_NUMBER: _ClassVar[int]
    STOP_GRACE_PERIOD_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DRAIN_PERIOD_FIELD_NUMBER: _ClassVar[int]
    LIVENESS_CHECK_FIELD_NUMBER: _ClassVar[int]
    STARTUP_CHECK_FIELD_NUMBER: _ClassVar[int]
    STOP_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    command: _containers.RepeatedScalarFieldContainer[str]
    environment: _containers.ScalarMap[str, str]
    image: str
    layer: _containers.RepeatedScalarFieldContainer[str]
    readiness_check: ReadinessCheck
    post_start: LifecycleHook
    pre_stop: LifecycleHook
    restart_policy: RestartPolicy
    stop_grace_period: _duration_pb2.Duration
    limit: ResourceLimit
    drain_period: _duration_pb2.Duration
    liveness_check: ReadinessCheck
    startup_check: ReadinessCheck
    stop_signal: str
    isolation: Isolation
    def __init__(self, name: _Optional[str] = ..., command: _Optional[_Iterable[str]] = ..., environment: _Optional[_Mapping[str, str]] = ..., image: _Optional[str] = ..., layer: _Optional[_Iterable[str]] = ..., readiness_check: _Optional[_Union[ReadinessCheck, _Mapping]] = ..., post_start: _Optional[_Union[LifecycleHook, _Mapping]] = ..., pre_stop: _Optional[_Union[LifecycleHook, _Mapping]] = ..., restart_policy: _Optional[_Union[RestartPolicy, str]] = ..., stop_grace_period: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., limit: _Optional[_Union[ResourceLimit, _Mapping]] = ..., drain_period: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., liveness_check: _Optional[_Union[ReadinessCheck, _Mapping]] = ..., startup_check: _Optional[_Union[ReadinessCheck, _Mapping]] = ..., stop_signal: _Optional[str] = ..., isolation: _Optional[_Union[Isolation, str]] = ...) -> None: ...

class ResourceLimit(_message.Message):
    __slots__ = ("cpu_millicores", "memory_bytes", "pids", "open_files")
    CPU_MILLICORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    OPEN_FILES_FIELD_NUMBER: _ClassVar[int]
    cpu_millicores: int
    memory_bytes: int
    pids: int
    open_files: int
    def __init__(self, cpu_millicores: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., pids: _Optional[int] = ..., open_files: _Optional[int] = ...) -> None: ...

class ReadinessCheck(_message.Message):
    __slots__ = ("exec", "tcp", "http", "grpc", "initial_delay", "period", "timeout", "failure_threshold", "success_threshold")
    EXEC_FIELD_NUMBER: _ClassVar[int]
    TCP_FIELD_NUMBER: _ClassVar[int]
    HTTP_FIELD_NUMBER: _ClassVar[int]
    GRPC_FIELD_NUMBER: _ClassVar[int]
    INITIAL_DELAY_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    exec: ExecCheck
    tcp: TcpCheck
    http: HttpCheck
    grpc: GrpcCheck
    initial_delay: _duration_pb2.Duration
    period: _duration_pb2.Duration
    timeout: _duration_pb2.Duration
    failure_threshold: int
    success_threshold: int
    def __init__(self, exec: _Optional[_Union[ExecCheck, _Mapping]] = ..., tcp: _Optional[_Union[TcpCheck, _Mapping]] = ..., http: _Optional[_Union[HttpCheck, _Mapping]] = ..., grpc: _Optional[_Union[GrpcCheck, _Mapping]] = ..., initial_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., period: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., failure_threshold: _Optional[int] = ..., success_threshold: _Optional[int] = ...) -> None: ...

class ExecCheck(_message.Message):
    __slots__ = ("command",)
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    command: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, command: _Optional[_Iterable[str]] = ...) -> None: ...

class TcpCheck(_message.Message):
    __slots__ = ("port",)
    PORT_FIELD_NUMBER: _ClassVar[int]
    port: str
    def __init__(self, port: _Optional[str] = ...) -> None: ...

class HttpCheck(_message.Message):
    __slots__ = ("port", "path")
    PORT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    port: str
    path: str
    def __init__(self, port: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class GrpcCheck(_message.Message):
    __slots__ = ("port", "service")
    PORT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    port: str
    service: str
    def __init__(self, port: _Optional[str] = ..., service: _Optional[str] = ...) -> None: ...

class LifecycleHook(_message.Message):
    __slots__ = ("command", "timeout", "name")
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    command: _containers.RepeatedScalarFieldContainer[str]
    timeout: _duration_pb2.Duration
    name: str
    def __init__(self, command: _Optional[_Iterable[str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class File(_message.Message):
    __slots__ = ("name", "url", "checksum", "mode")
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    url: str
    checksum: str
    mode: int
    def __init__(self, name: _Optional[str] = ..., url: _Optional[str] = ..., checksum: _Optional[str] = ..., mode: _Optional[int] = ...) -> None: ...

class Package(_message.Message):
    __slots__ = ("name", "url", "checksum")
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    name: str
    url: str
    checksum: str
    def __init__(self, name: _Optional[str] = ..., url: _Optional[str] = ..., checksum: _Optional[str] = ...) -> None: ...

class Volume(_message.Message):
    __slots__ = ("name", "mount_path", "disk", "persistent")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MOUNT_PATH_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    PERSISTENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    mount_path: str
    disk: str
    persistent: bool
    def __init__(self, name: _Optional[str] = ..., mount_path: _Optional[str] = ..., disk: _Optional[str] = ..., persistent: _Optional[bool] = ...) -> None: ...

class SecretDescriptor(_message.Message):
    __slots__ = ("name", "provider", "id", "key", "version", "file", "environment_variable")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_VARIABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    provider: str
    id: str
    key: str
    version: str
    file: SecretFile
    environment_variable: str
    def __init__(self, name: _Optional[str] = ..., provider: _Optional[str] = ..., id: _Optional[str] = ..., key: _Optional[str] = ..., version: _Optional[str] = ..., file: _Optional[_Union[SecretFile, _Mapping]] = ..., environment_variable: _Optional[str] = ...) -> None: ...

class SecretFile(_message.Message):
    __slots__ = ("path", "mode", "owner")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    path: str
    mode: int
    owner: str
    def __init__(self, path: _Optional[str] = ..., mode: _Optional[int] = ..., owner: _Optional[str] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("status", "reason", "message", "last_transition_time", "receipt")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LAST_TRANSITION_TIME_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    status: ConditionStatus
    reason: str
    message: str
    last_transition_time: _timestamp_pb2.Timestamp
    receipt: Receipt
    def __init__(self, status: _Optional[_Union[ConditionStatus, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., last_transition_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("last_heartbeat_time", "heard_by", "decided_by", "guard_verdict", "decided_at_version", "silence", "recovered_from")
    LAST_HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    HEARD_BY_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    GUARD_VERDICT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_AT_VERSION_FIELD_NUMBER: _ClassVar[int]
    SILENCE_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_FROM_FIELD_NUMBER: _ClassVar[int]
    last_heartbeat_time: _timestamp_pb2.Timestamp
    heard_by: str
    decided_by: str
    guard_verdict: str
    decided_at_version: int
    silence: _duration_pb2.Duration
    recovered_from: str
    def __init__(self, last_heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heard_by: _Optional[str] = ..., decided_by: _Optional[str] = ..., guard_verdict: _Optional[str] = ..., decided_at_version: _Optional[int] = ..., silence: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., recovered_from: _Optional[str] = ...) -> None: ...

class InstanceStatus(_message.Message):
    __slots__ = ("last_heartbeat_time", "ready", "revision", "heartbeat", "agent")
    class HeartbeatEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _timestamp_pb2.Timestamp
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    LAST_HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    last_heartbeat_time: _timestamp_pb2.Timestamp
    ready: Condition
    revision: _containers.RepeatedCompositeFieldContainer[RevisionStatus]
    heartbeat: _containers.MessageMap[str, _timestamp_pb2.Timestamp]
    agent: Condition
    def __init__(self, last_heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ready: _Optional[_Union[Condition, _Mapping]] = ..., revision: _Optional[_Iterable[_Union[RevisionStatus, _Mapping]]] = ..., heartbeat: _Optional[_Mapping[str, _timestamp_pb2.Timestamp]] = ..., agent: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class RevisionStatus(_message.Message):
    __slots__ = ("id", "installed", "ready", "container", "incarnation", "sequence", "spec_version")
    ID_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SPEC_VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    installed: Condition
    ready: Condition
    container: _containers.RepeatedCompositeFieldContainer[ContainerStatus]
    incarnation: int
    sequence: int
    spec_version: int
    def __init__(self, id: _Optional[str] = ..., installed: _Optional[_Union[Condition, _Mapping]] = ..., ready: _Optional[_Union[Condition, _Mapping]] = ..., container: _Optional[_Iterable[_Union[ContainerStatus, _Mapping]]] = ..., incarnation: _Optional[int] = ..., sequence: _Optional[int] = ..., spec_version: _Optional[int] = ...) -> None: ...

class ContainerStatus(_message.Message):
    __slots__ = ("name", "ready", "state", "restart_count", "last_termination", "isolation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RESTART_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_TERMINATION_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    ready: bool
    state: ContainerState
    restart_count: int
    last_termination: ContainerTerminated
    isolation: str
    def __init__(self, name: _Optional[str] = ..., ready: _Optional[bool] = ..., state: _Optional[_Union[ContainerState, _Mapping]] = ..., restart_count: _Optional[int] = ..., last_termination: _Optional[_Union[ContainerTerminated, _Mapping]] = ..., isolation: _Optional[str] = ...) -> None: ...

class ContainerState(_message.Message):
    __slots__ = ("waiting", "running", "terminated")
    WAITING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    waiting: ContainerWaiting
    running: ContainerRunning
    terminated: ContainerTerminated
    def __init__(self, waiting: _Optional[_Union[ContainerWaiting, _Mapping]] = ..., running: _Optional[_Union[ContainerRunning, _Mapping]] = ..., terminated: _Optional[_Union[ContainerTerminated, _Mapping]] = ...) -> None: ...

class ContainerWaiting(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ContainerRunning(_message.Message):
    __slots__ = ("start_time",)
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ContainerTerminated(_message.Message):
    __slots__ = ("exit_code", "signal", "reason", "message", "start_time", "finish_time", "output")
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    exit_code: int
    signal: int
    reason: str
    message: str
    start_time: _timestamp_pb2.Timestamp
    finish_time: _timestamp_pb2.Timestamp
    output: str
    def __init__(self, exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., output: _Optional[str] = ...) -> None: ...
