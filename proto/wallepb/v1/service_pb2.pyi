import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from wallepb.v1 import host_pb2 as _host_pb2
from wallepb.v1 import project_pb2 as _project_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChangeMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_MODE_UNSPECIFIED: _ClassVar[ChangeMode]
    CHANGE_MODE_REPLACE: _ClassVar[ChangeMode]
    CHANGE_MODE_ADD: _ClassVar[ChangeMode]
    CHANGE_MODE_REMOVE: _ClassVar[ChangeMode]

class HostChange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOST_CHANGE_UNSPECIFIED: _ClassVar[HostChange]
    HOST_CHANGE_PREPARE: _ClassVar[HostChange]
    HOST_CHANGE_MOVE: _ClassVar[HostChange]
    HOST_CHANGE_REMOVE: _ClassVar[HostChange]

class Steering(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEERING_UNSPECIFIED: _ClassVar[Steering]
    STEERING_PAUSE: _ClassVar[Steering]
    STEERING_CONTINUE: _ClassVar[Steering]
    STEERING_RETRY: _ClassVar[Steering]
CHANGE_MODE_UNSPECIFIED: ChangeMode
CHANGE_MODE_REPLACE: ChangeMode
CHANGE_MODE_ADD: ChangeMode
CHANGE_MODE_REMOVE: ChangeMode
HOST_CHANGE_UNSPECIFIED: HostChange
HOST_CHANGE_PREPARE: HostChange
HOST_CHANGE_MOVE: HostChange
HOST_CHANGE_REMOVE: HostChange
STEERING_UNSPECIFIED: Steering
STEERING_PAUSE: Steering
STEERING_CONTINUE: Steering
STEERING_RETRY: Steering

class Order(_message.Message):
    __slots__ = ("by", "create_project", "update_project", "delete_project", "switch_automation", "add_host", "change_host", "set_host_state", "start_operation", "cancel_operation", "add_scenario", "end_scenario", "checks", "agree_scenario", "release_tasks", "import_machines", "remove_machine", "steer_scenario", "reports", "acknowledge_notice", "may_import", "access")
    BY_FIELD_NUMBER: _ClassVar[int]
    CREATE_PROJECT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_PROJECT_FIELD_NUMBER: _ClassVar[int]
    DELETE_PROJECT_FIELD_NUMBER: _ClassVar[int]
    SWITCH_AUTOMATION_FIELD_NUMBER: _ClassVar[int]
    ADD_HOST_FIELD_NUMBER: _ClassVar[int]
    CHANGE_HOST_FIELD_NUMBER: _ClassVar[int]
    SET_HOST_STATE_FIELD_NUMBER: _ClassVar[int]
    START_OPERATION_FIELD_NUMBER: _ClassVar[int]
    CANCEL_OPERATION_FIELD_NUMBER: _ClassVar[int]
    ADD_SCENARIO_FIELD_NUMBER: _ClassVar[int]
    END_SCENARIO_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    AGREE_SCENARIO_FIELD_NUMBER: _ClassVar[int]
    RELEASE_TASKS_FIELD_NUMBER: _ClassVar[int]
    IMPORT_MACHINES_FIELD_NUMBER: _ClassVar[int]
    REMOVE_MACHINE_FIELD_NUMBER: _ClassVar[int]
    STEER_SCENARIO_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_NOTICE_FIELD_NUMBER: _ClassVar[int]
    MAY_IMPORT_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    by: str
    create_project: CreateProjectRequest
    update_project: UpdateProjectRequest
    delete_project: DeleteProjectRequest
    switch_automation: SwitchAutomationRequest
    add_host: AddHostRequest
    change_host: ChangeHostRequest
    set_host_state: SetHostStateRequest
    start_operation: StartOperationRequest
    cancel_operation: CancelOperationRequest
    add_scenario: AddScenarioRequest
    end_scenario: EndScenarioRequest
    checks: HostChecks
    agree_scenario: AgreeScenarioRequest
    release_tasks: ReleaseTasksRequest
    import_machines: ImportMachinesRequest
    remove_machine: RemoveMachineRequest
    steer_scenario: SteerScenarioRequest
    reports: ReportChecksRequest
    acknowledge_notice: AcknowledgeNoticeRequest
    may_import: bool
    access: str
    def __init__(self, by: _Optional[str] = ..., create_project: _Optional[_Union[CreateProjectRequest, _Mapping]] = ..., update_project: _Optional[_Union[UpdateProjectRequest, _Mapping]] = ..., delete_project: _Optional[_Union[DeleteProjectRequest, _Mapping]] = ..., switch_automation: _Optional[_Union[SwitchAutomationRequest, _Mapping]] = ..., add_host: _Optional[_Union[AddHostRequest, _Mapping]] = ..., change_host: _Optional[_Union[ChangeHostRequest, _Mapping]] = ..., set_host_state: _Optional[_Union[SetHostStateRequest, _Mapping]] = ..., start_operation: _Optional[_Union[StartOperationRequest, _Mapping]] = ..., cancel_operation: _Optional[_Union[CancelOperationRequest, _Mapping]] = ..., add_scenario: _Optional[_Union[AddScenarioRequest, _Mapping]] = ..., end_scenario: _Optional[_Union[EndScenarioRequest, _Mapping]] = ..., checks: _Optional[_Union[HostChecks, _Mapping]] = ..., agree_scenario: _Optional[_Union[AgreeScenarioRequest, _Mapping]] = ..., release_tasks: _Optional[_Union[ReleaseTasksRequest, _Mapping]] = ..., import_machines: _Optional[_Union[ImportMachinesRequest, _Mapping]] = ..., remove_machine: _Optional[_Union[RemoveMachineRequest, _Mapping]] = ..., steer_scenario: _Optional[_Union[SteerScenarioRequest, _Mapping]] = ..., reports: _Optional[_Union[ReportChecksRequest, _Mapping]] = ..., acknowledge_notice: _Optional[_Union[AcknowledgeNoticeRequest, _Mapping]] = ..., may_import: _Optional[bool] = ..., access: _Optional[str] = ...) -> None: ...

class GetProjectRequest(_message.Message):
    __slots__ = ("project",)
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    project: str
    def __init__(self, project: _Optional[str] = ...) -> None: ...

class GetProjectResponse(_message.Message):
    __slots__ = ("project", "fuse", "hosts", "warnings", "restored")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    FUSE_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    project: _project_pb2.Project
    fuse: _project_pb2.Fuse
    hosts: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    restored: _project_pb2.Restored
    def __init__(self, project: _Optional[_Union[_project_pb2.Project, _Mapping]] = ..., fuse: _Optional[_Union[_project_pb2.Fuse, _Mapping]] = ..., hosts: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ..., restored: _Optional[_Union[_project_pb2.Restored, _Mapping]] = ...) -> None: ...

class ListProjectsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListProjectsResponse(_message.Message):
    __slots__ = ("projects",)
    PROJECTS_FIELD_NUMBER: _ClassVar[int]
    projects: _containers.RepeatedCompositeFieldContainer[GetProjectResponse]
    def __init__(self, projects: _Optional[_Iterable[_Union[GetProjectResponse, _Mapping]]] = ...) -> None: ...

class GetHostRequest(_message.Message):
    __slots__ = ("host",)
    HOST_FIELD_NUMBER: _ClassVar[int]
    host: str
    def __init__(self, host: _Optional[str] = ...) -> None: ...

class GetHostResponse(_message.Message):
    __slots__ = ("host", "decision", "blocked")
    HOST_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    host: _host_pb2.Host
    decision: str
    blocked: str
    def __init__(self, host: _Optional[_Union[_host_pb2.Host, _Mapping]] = ..., decision: _Optional[str] = ..., blocked: _Optional[str] = ...) -> None: ...

class ListHostsRequest(_message.Message):
    __slots__ = ("project", "rack", "switch", "troubled", "dc", "state", "status", "check", "names", "page_size", "page_token")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    TROUBLED_FIELD_NUMBER: _ClassVar[int]
    DC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    project: str
    rack: str
    switch: str
    troubled: bool
    dc: str
    state: _host_pb2.HostState
    status: _host_pb2.HostStatus
    check: str
    names: _containers.RepeatedScalarFieldContainer[str]
    page_size: int
    page_token: str
    def __init__(self, project: _Optional[str] = ..., rack: _Optional[str] = ..., switch: _Optional[str] = ..., troubled: _Optional[bool] = ..., dc: _Optional[str] = ..., state: _Optional[_Union[_host_pb2.HostState, str]] = ..., status: _Optional[_Union[_host_pb2.HostStatus, str]] = ..., check: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListHostsResponse(_message.Message):
    __slots__ = ("hosts", "next_page_token")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[GetHostResponse]
    next_page_token: str
    def __init__(self, hosts: _Optional[_Iterable[_Union[GetHostResponse, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetLimitsRequest(_message.Message):
    __slots__ = ("project",)
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    project: str
    def __init__(self, project: _Optional[str] = ...) -> None: ...

class GetLimitsResponse(_message.Message):
    __slots__ = ("usage", "fuse")
    USAGE_FIELD_NUMBER: _ClassVar[int]
    FUSE_FIELD_NUMBER: _ClassVar[int]
    usage: _containers.RepeatedCompositeFieldContainer[Usage]
    fuse: _project_pb2.Fuse
    def __init__(self, usage: _Optional[_Iterable[_Union[Usage, _Mapping]]] = ..., fuse: _Optional[_Union[_project_pb2.Fuse, _Mapping]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("counter", "pair", "used", "hosts")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    counter: str
    pair: str
    used: int
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, counter: _Optional[str] = ..., pair: _Optional[str] = ..., used: _Optional[int] = ..., hosts: _Optional[_Iterable[str]] = ...) -> None: ...

class GetForecastRequest(_message.Message):
    __slots__ = ("project", "automation", "credits")
    class CreditsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AUTOMATION_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    project: str
    automation: str
    credits: _containers.ScalarMap[str, int]
    def __init__(self, project: _Optional[str] = ..., automation: _Optional[str] = ..., credits: _Optional[_Mapping[str, int]] = ...) -> None: ...

class GetForecastResponse(_message.Message):
    __slots__ = ("lines", "trips", "decisions", "credits_needed")
    class CreditsNeededEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    LINES_FIELD_NUMBER: _ClassVar[int]
    TRIPS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    CREDITS_NEEDED_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedScalarFieldContainer[str]
    trips: bool
    decisions: _containers.RepeatedScalarFieldContainer[str]
    credits_needed: _containers.ScalarMap[str, int]
    def __init__(self, lines: _Optional[_Iterable[str]] = ..., trips: _Optional[bool] = ..., decisions: _Optional[_Iterable[str]] = ..., credits_needed: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ListIncidentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListIncidentsResponse(_message.Message):
    __slots__ = ("incidents",)
    INCIDENTS_FIELD_NUMBER: _ClassVar[int]
    incidents: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, incidents: _Optional[_Iterable[str]] = ...) -> None: ...

class ListNoticesRequest(_message.Message):
    __slots__ = ("project", "host", "severity", "all", "page_size", "page_token")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    project: str
    host: str
    severity: _project_pb2.Severity
    all: bool
    page_size: int
    page_token: str
    def __init__(self, project: _Optional[str] = ..., host: _Optional[str] = ..., severity: _Optional[_Union[_project_pb2.Severity, str]] = ..., all: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListNoticesResponse(_message.Message):
    __slots__ = ("notices", "next_page_token")
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    notices: _containers.RepeatedCompositeFieldContainer[_project_pb2.NoticeRecord]
    next_page_token: str
    def __init__(self, notices: _Optional[_Iterable[_Union[_project_pb2.NoticeRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AcknowledgeNoticeRequest(_message.Message):
    __slots__ = ("notice", "reason")
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    notice: str
    reason: str
    def __init__(self, notice: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class AcknowledgeNoticeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetScenarioRequest(_message.Message):
    __slots__ = ("scenario",)
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    def __init__(self, scenario: _Optional[str] = ...) -> None: ...

class GetScenarioResponse(_message.Message):
    __slots__ = ("scenario", "blocking")
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_FIELD_NUMBER: _ClassVar[int]
    scenario: _project_pb2.Scenario
    blocking: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, scenario: _Optional[_Union[_project_pb2.Scenario, _Mapping]] = ..., blocking: _Optional[_Iterable[str]] = ...) -> None: ...

class ListScenariosRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListScenariosResponse(_message.Message):
    __slots__ = ("scenarios",)
    SCENARIOS_FIELD_NUMBER: _ClassVar[int]
    scenarios: _containers.RepeatedCompositeFieldContainer[_project_pb2.Scenario]
    def __init__(self, scenarios: _Optional[_Iterable[_Union[_project_pb2.Scenario, _Mapping]]] = ...) -> None: ...

class GetSettingsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSettingsResponse(_message.Message):
    __slots__ = ("acting", "stopped", "fuse", "installation")
    ACTING_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    FUSE_FIELD_NUMBER: _ClassVar[int]
    INSTALLATION_FIELD_NUMBER: _ClassVar[int]
    acting: str
    stopped: str
    fuse: _project_pb2.Fuse
    installation: str
    def __init__(self, acting: _Optional[str] = ..., stopped: _Optional[str] = ..., fuse: _Optional[_Union[_project_pb2.Fuse, _Mapping]] = ..., installation: _Optional[str] = ...) -> None: ...

class CreateProjectRequest(_message.Message):
    __slots__ = ("project",)
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    project: _project_pb2.Project
    def __init__(self, project: _Optional[_Union[_project_pb2.Project, _Mapping]] = ...) -> None: ...

class CreateProjectResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdateProjectRequest(_message.Message):
    __slots__ = ("project", "cms_mode", "cms", "limits", "reason", "set_scheme", "scheme", "set_owners", "owners", "set_notifications", "notifications", "max_repairs_per_host")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _project_pb2.Limit
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_project_pb2.Limit, _Mapping]] = ...) -> None: ...
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    CMS_MODE_FIELD_NUMBER: _ClassVar[int]
    CMS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SET_SCHEME_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    SET_OWNERS_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SET_NOTIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_REPAIRS_PER_HOST_FIELD_NUMBER: _ClassVar[int]
    project: str
    cms_mode: ChangeMode
    cms: _containers.RepeatedCompositeFieldContainer[_project_pb2.Cms]
    limits: _containers.MessageMap[str, _project_pb2.Limit]
    reason: str
    set_scheme: bool
    scheme: _containers.RepeatedCompositeFieldContainer[_project_pb2.Scheme]
    set_owners: bool
    owners: _containers.RepeatedScalarFieldContainer[str]
    set_notifications: bool
    notifications: _project_pb2.Notifications
    max_repairs_per_host: _project_pb2.Limit
    def __init__(self, project: _Optional[str] = ..., cms_mode: _Optional[_Union[ChangeMode, str]] = ..., cms: _Optional[_Iterable[_Union[_project_pb2.Cms, _Mapping]]] = ..., limits: _Optional[_Mapping[str, _project_pb2.Limit]] = ..., reason: _Optional[str] = ..., set_scheme: _Optional[bool] = ..., scheme: _Optional[_Iterable[_Union[_project_pb2.Scheme, _Mapping]]] = ..., set_owners: _Optional[bool] = ..., owners: _Optional[_Iterable[str]] = ..., set_notifications: _Optional[bool] = ..., notifications: _Optional[_Union[_project_pb2.Notifications, _Mapping]] = ..., max_repairs_per_host: _Optional[_Union[_project_pb2.Limit, _Mapping]] = ...) -> None: ...

class UpdateProjectResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteProjectRequest(_message.Message):
    __slots__ = ("project",)
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    project: str
    def __init__(self, project: _Optional[str] = ...) -> None: ...

class DeleteProjectResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SwitchAutomationRequest(_message.Message):
    __slots__ = ("project", "automation", "on", "reason", "credits", "credit_time")
    class CreditsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AUTOMATION_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    CREDIT_TIME_FIELD_NUMBER: _ClassVar[int]
    project: str
    automation: str
    on: bool
    reason: str
    credits: _containers.ScalarMap[str, int]
    credit_time: _duration_pb2.Duration
    def __init__(self, project: _Optional[str] = ..., automation: _Optional[str] = ..., on: _Optional[bool] = ..., reason: _Optional[str] = ..., credits: _Optional[_Mapping[str, int]] = ..., credit_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SwitchAutomationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ImportMachinesRequest(_message.Message):
    __slots__ = ("machines", "hosts", "dry_run")
    MACHINES_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    machines: _containers.RepeatedCompositeFieldContainer[_host_pb2.Machine]
    hosts: _containers.RepeatedCompositeFieldContainer[AddHostRequest]
    dry_run: bool
    def __init__(self, machines: _Optional[_Iterable[_Union[_host_pb2.Machine, _Mapping]]] = ..., hosts: _Optional[_Iterable[_Union[AddHostRequest, _Mapping]]] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ImportMachinesResponse(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[MachineChange]
    def __init__(self, changes: _Optional[_Iterable[_Union[MachineChange, _Mapping]]] = ...) -> None: ...

class MachineChange(_message.Message):
    __slots__ = ("machine", "is_new", "project", "differences")
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    IS_NEW_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    machine: str
    is_new: bool
    project: str
    differences: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, machine: _Optional[str] = ..., is_new: _Optional[bool] = ..., project: _Optional[str] = ..., differences: _Optional[_Iterable[str]] = ...) -> None: ...

class RemoveMachineRequest(_message.Message):
    __slots__ = ("machine",)
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    machine: str
    def __init__(self, machine: _Optional[str] = ...) -> None: ...

class RemoveMachineResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListMachinesRequest(_message.Message):
    __slots__ = ("project",)
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    project: str
    def __init__(self, project: _Optional[str] = ...) -> None: ...

class ListMachinesResponse(_message.Message):
    __slots__ = ("machines",)
    MACHINES_FIELD_NUMBER: _ClassVar[int]
    machines: _containers.RepeatedCompositeFieldContainer[_host_pb2.Machine]
    def __init__(self, machines: _Optional[_Iterable[_Union[_host_pb2.Machine, _Mapping]]] = ...) -> None: ...

class AddHostRequest(_message.Message):
    __slots__ = ("host", "inventory", "project", "location", "state", "bmc", "ignore_cms", "preordered", "prepare", "address")
    HOST_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    BMC_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CMS_FIELD_NUMBER: _ClassVar[int]
    PREORDERED_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    host: str
    inventory: int
    project: str
    location: _host_pb2.Location
    state: _host_pb2.HostState
    bmc: str
    ignore_cms: bool
    preordered: bool
    prepare: bool
    address: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, host: _Optional[str] = ..., inventory: _Optional[int] = ..., project: _Optional[str] = ..., location: _Optional[_Union[_host_pb2.Location, _Mapping]] = ..., state: _Optional[_Union[_host_pb2.HostState, str]] = ..., bmc: _Optional[str] = ..., ignore_cms: _Optional[bool] = ..., preordered: _Optional[bool] = ..., prepare: _Optional[bool] = ..., address: _Optional[_Iterable[str]] = ...) -> None: ...

class AddHostResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ChangeHostRequest(_message.Message):
    __slots__ = ("host", "change", "project", "release", "ignore_cms", "reason")
    HOST_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CMS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    host: str
    change: HostChange
    project: str
    release: bool
    ignore_cms: bool
    reason: str
    def __init__(self, host: _Optional[str] = ..., change: _Optional[_Union[HostChange, str]] = ..., project: _Optional[str] = ..., release: _Optional[bool] = ..., ignore_cms: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class ChangeHostResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetHostStateRequest(_message.Message):
    __slots__ = ("host", "state", "status", "reason")
    HOST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    host: str
    state: _host_pb2.HostState
    status: _host_pb2.HostStatus
    reason: str
    def __init__(self, host: _Optional[str] = ..., state: _Optional[_Union[_host_pb2.HostState, str]] = ..., status: _Optional[_Union[_host_pb2.HostStatus, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class SetHostStateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StartOperationRequest(_message.Message):
    __slots__ = ("host", "kind", "ignore_cms", "reason", "group_id")
    HOST_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CMS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    host: str
    kind: _host_pb2.OperationKind
    ignore_cms: bool
    reason: str
    group_id: str
    def __init__(self, host: _Optional[str] = ..., kind: _Optional[_Union[_host_pb2.OperationKind, str]] = ..., ignore_cms: _Optional[bool] = ..., reason: _Optional[str] = ..., group_id: _Optional[str] = ...) -> None: ...

class StartOperationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelOperationRequest(_message.Message):
    __slots__ = ("host", "reason")
    HOST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    host: str
    reason: str
    def __init__(self, host: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelOperationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AddScenarioRequest(_message.Message):
    __slots__ = ("scenario", "kind", "switch", "dc", "hosts", "at_once", "ticket", "reason", "wave_size", "by_domain", "max_failures", "verify")
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    DC_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    AT_ONCE_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WAVE_SIZE_FIELD_NUMBER: _ClassVar[int]
    BY_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    kind: _project_pb2.ScenarioKind
    switch: str
    dc: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    at_once: int
    ticket: str
    reason: str
    wave_size: str
    by_domain: str
    max_failures: str
    verify: str
    def __init__(self, scenario: _Optional[str] = ..., kind: _Optional[_Union[_project_pb2.ScenarioKind, str]] = ..., switch: _Optional[str] = ..., dc: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., at_once: _Optional[int] = ..., ticket: _Optional[str] = ..., reason: _Optional[str] = ..., wave_size: _Optional[str] = ..., by_domain: _Optional[str] = ..., max_failures: _Optional[str] = ..., verify: _Optional[str] = ...) -> None: ...

class AddScenarioResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AgreeScenarioRequest(_message.Message):
    __slots__ = ("scenario", "project", "refused", "reason")
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    project: str
    refused: bool
    reason: str
    def __init__(self, scenario: _Optional[str] = ..., project: _Optional[str] = ..., refused: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class AgreeScenarioResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EndScenarioRequest(_message.Message):
    __slots__ = ("scenario", "done", "reason")
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    done: bool
    reason: str
    def __init__(self, scenario: _Optional[str] = ..., done: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class EndScenarioResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SteerScenarioRequest(_message.Message):
    __slots__ = ("scenario", "steering", "reason")
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    STEERING_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    steering: Steering
    reason: str
    def __init__(self, scenario: _Optional[str] = ..., steering: _Optional[_Union[Steering, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class SteerScenarioResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HostChecks(_message.Message):
    __slots__ = ("host", "check", "boot_id")
    HOST_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    host: str
    check: _containers.RepeatedCompositeFieldContainer[CheckReport]
    boot_id: str
    def __init__(self, host: _Optional[str] = ..., check: _Optional[_Iterable[_Union[CheckReport, _Mapping]]] = ..., boot_id: _Optional[str] = ...) -> None: ...

class CheckReport(_message.Message):
    __slots__ = ("name", "failing", "text", "source", "fingerprint", "starts_at")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    STARTS_AT_FIELD_NUMBER: _ClassVar[int]
    name: str
    failing: bool
    text: str
    source: str
    fingerprint: str
    starts_at: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., failing: _Optional[bool] = ..., text: _Optional[str] = ..., source: _Optional[str] = ..., fingerprint: _Optional[str] = ..., starts_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReportChecksRequest(_message.Message):
    __slots__ = ("hosts",)
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[HostChecks]
    def __init__(self, hosts: _Optional[_Iterable[_Union[HostChecks, _Mapping]]] = ...) -> None: ...

class ReportChecksResponse(_message.Message):
    __slots__ = ("unknown",)
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    unknown: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, unknown: _Optional[_Iterable[str]] = ...) -> None: ...

class TakeAlertsRequest(_message.Message):
    __slots__ = ("version", "group_key", "truncated_alerts", "status", "receiver", "group_labels", "common_labels", "common_annotations", "external_url", "alerts", "notification_reason")
    class GroupLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class CommonLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class CommonAnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_ALERTS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    GROUP_LABELS_FIELD_NUMBER: _ClassVar[int]
    COMMON_LABELS_FIELD_NUMBER: _ClassVar[int]
    COMMON_ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_URL_FIELD_NUMBER: _ClassVar[int]
    ALERTS_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATION_REASON_FIELD_NUMBER: _ClassVar[int]
    version: str
    group_key: str
    truncated_alerts: int
    status: str
    receiver: str
    group_labels: _containers.ScalarMap[str, str]
    common_labels: _containers.ScalarMap[str, str]
    common_annotations: _containers.ScalarMap[str, str]
    external_url: str
    alerts: _containers.RepeatedCompositeFieldContainer[Alert]
    notification_reason: str
    def __init__(self, version: _Optional[str] = ..., group_key: _Optional[str] = ..., truncated_alerts: _Optional[int] = ..., status: _Optional[str] = ..., receiver: _Optional[str] = ..., group_labels: _Optional[_Mapping[str, str]] = ..., common_labels: _Optional[_Mapping[str, str]] = ..., common_annotations: _Optional[_Mapping[str, str]] = ..., external_url: _Optional[str] = ..., alerts: _Optional[_Iterable[_Union[Alert, _Mapping]]] = ..., notification_reason: _Optional[str] = ...) -> None: ...

class Alert(_message.Message):
    __slots__ = ("status", "labels", "annotations", "starts_at", "ends_at", "generator_url", "fingerprint")
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
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    STARTS_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    GENERATOR_URL_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    status: str
    labels: _containers.ScalarMap[str, str]
    annotations: _containers.ScalarMap[str, str]
    starts_at: _timestamp_pb2.Timestamp
    ends_at: _timestamp_pb2.Timestamp
    generator_url: str
    fingerprint: str
    def __init__(self, status: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., starts_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ends_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., generator_url: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class TakeAlertsResponse(_message.Message):
    __slots__ = ("unknown",)
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    unknown: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, unknown: _Optional[_Iterable[str]] = ...) -> None: ...

class FreezeRequest(_message.Message):
    __slots__ = ("frozen", "reason")
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    frozen: bool
    reason: str
    def __init__(self, frozen: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class FreezeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReleaseTasksRequest(_message.Message):
    __slots__ = ("project", "reason")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    project: str
    reason: str
    def __init__(self, project: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ReleaseTasksResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OpenEpochRequest(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class OpenEpochResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FollowFusesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FollowFusesResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: _containers.RepeatedCompositeFieldContainer[_project_pb2.FuseEntry]
    def __init__(self, entry: _Optional[_Iterable[_Union[_project_pb2.FuseEntry, _Mapping]]] = ...) -> None: ...
