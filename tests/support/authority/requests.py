"""The request that stands for each method: about service web, node n1 and project web, and harmless if it is let in.

Who is refused is told before the rest is looked at, so many of these are refused for another reason afterwards.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any, Final

from console.pages.editing import content_mark

Body = dict[str, Any]
_WEB: Final = {"serviceId": ["web"]}
_NODE: Final = {"nodeName": ["n1"]}
_SERVICE: Final = {"serviceId": "web"}
_OLD: Final = "1"
_INSTANCE: Final = {
    "meta": {"id": "web-9", "serviceId": "web"},
    "spec": {"nodeName": "n1", "revision": [{"id": "r1", "target": "REVISION_TARGET_READY"}]},
}
_REPORT: Final = {"instanceId": "web-1", "uid": "1", "node": "n1", "revision": {"id": "r1", "incarnation": "1"}}
_BEGIN: Final = {"instanceId": "web-1", "revisionId": "r1", "node": "n1"}
_NOW: Final = {"duration": "3600s", "by": "me", "reason": "test"}
_WHY: Final = {"reason": "test"}
_TASK: Final = {"id": "new", "action": "reboot", "host": ["n1"], "issuer": "ann"}
_CHECKS: Final = {"hosts": [{"host": "n1", "check": [{"name": "ssh", "failing": False}]}]}

HQ: Final[dict[str, Body]] = {
    "CreateInstance": {"instance": _INSTANCE, "validateOnly": True},
    "UpdateInstance": {
        "instance": {"meta": {"id": "web-1", "serviceId": "web"}},
        "updateMask": "meta.labels",
        "validateOnly": True,
    },
    "UpdateInstance of node_name": {
        "instance": {"meta": {"id": "web-1", "serviceId": "web"}, "spec": {"nodeName": "n1"}},
        "updateMask": "spec.nodeName",
        "validateOnly": True,
    },
    "DeleteInstance": {"id": "web-1", "version": _OLD},
    "ApplyInstances": {"instance": [_INSTANCE], "validateOnly": True},
    "PutRevision": {"instanceId": "web-1", "revision": {"id": "r1"}, "validateOnly": True},
    "DeleteRevision": {"instanceId": "web-1", "revisionId": "r1", "version": _OLD},
    "GetInstance": {"id": "web-1"},
    "FindInstances": {"filter": _WEB},
    "FindInstances of the node": {"filter": _NODE},
    "FindInstances all": {},
    "FindInstances by id": {"filter": {"instanceId": ["web-1", "mail-1"]}},
    "CountInstances": {"filter": _WEB},
    "CountInstances of the node": {"filter": _NODE},
    "WatchInstances": {"filter": _WEB},
    "WatchInstances of the node": {"filter": _NODE},
    "WatchInstances all": {},
    "ListSilences": {"filter": _WEB},
    "ListSilences of the node": {"filter": _NODE},
    "ExplainInstance": {"id": "web-1"},
    "GetRevision": {"instanceId": "web-1", "revisionId": "r1"},
    "BeginReporting": _BEGIN,
    "BeginReportings": {"begin": [_BEGIN]},
    "BeginReportings with one of n2": {"begin": [_BEGIN, {**_BEGIN, "instanceId": "mail-1", "node": "n2"}]},
    "ReportStatus": _REPORT,
    "ReportStatuses": {"report": [_REPORT]},
    "ReportStatuses with one of n2": {"report": [_REPORT, {**_REPORT, "instanceId": "mail-1", "node": "n2"}]},
    "GetGuard": {},
    "ReleaseGuard": _NOW,
    "ForceGuard": _NOW,
    "ListReplicas": {},
    "ListQuarantine": {},
    "ListTransitions": {},
    "SuspendNode": {"nodeName": "n1", **_NOW},
    "ResumeNode": {"nodeName": "n1"},
    "ListSuspensions": {},
    "GetEpoch": {},
    "ConfirmEpoch": {"epoch": "another", "by": "me", "reason": "test"},
    "WhoAmI": {},
    "Explain": {},
    "Explain of others": {"identity": "admin"},
}

CMS: Final[dict[str, Body]] = {
    "CreateTask": {"task": _TASK, "dryRun": True},
    "CreateTask of wall-e": {"task": {**_TASK, "issuer": "wall-e"}, "dryRun": True},
    "GetTask": {"id": "task-n1"},
    "ListTasks": {},
    "DeleteTask": {"id": "task-n1"},
    "ConfirmTask": {"id": "task-n1"},
    "WhyTask": {"id": "task-n1"},
    "Plan": {"host": ["n1"]},
    "PutBudget": {"budget": {"name": "web", "service": "web", "minReady": "1"}},
    "ListBudgets": {},
    "DeleteBudget": {"name": "web"},
    "PutWindows": {"windows": {"name": "web", "service": "web", "hours": [{"begin": "00:00", "end": "24:00"}]}},
    "ListWindows": {},
    "DeleteWindows": {"name": "web"},
    "EndDeclaration": {"issuer": "wall-e"},
    "GetStatus": {},
    "FollowLedger": {},
    "Freeze": _WHY,
    "Unfreeze": _WHY,
    "Open": _WHY,
    "ExtendTask": {"id": "task-n1", "seconds": 60, **_WHY},
    "ExpediteTask": {"id": "task-n1", **_WHY},
    "EndTask": {"id": "task-n1", **_WHY},
    "WhoAmI": {},
    "Explain": {},
    "Explain of others": {"identity": "admin"},
}
_WIRE: Final[Body] = {"id": "new", "type": "manual", "issuer": "ann", "action": "reboot", "hosts": ["n1"]}
WIRE: Final[dict[str, tuple[str, str, Body | None]]] = {
    "List": ("GET", "/v1.4/tasks", None),
    "Create": (
        "POST",
        "/v1.4/tasks?dry_run=true",
        _WIRE,
    ),
    "Get": ("GET", "/v1.4/tasks/wire-n1", None),
    "Delete": ("DELETE", "/v1.4/tasks/wire-n1", None),
    "Confirm": ("POST", "/v1.4/tasks/wire-n1/confirm", {}),
    "PreReboot": ("POST", "/v1/pre-reboot", {"client_params": {"id": "n1", "group": "web"}}),
    "SteadyState": ("POST", "/v1/steady-state", {"client_params": {"id": "n1", "group": "web"}}),
}

NANNY: Final[dict[str, Body]] = {
    "CreateService": _SERVICE,
    "UpdateService": {**_SERVICE, "updateMask": "owners"},
    "DeleteService": _SERVICE,
    "GetService": _SERVICE,
    "ListServices": {},
    "CreateSnapshot": {**_SERVICE, "content": ""},
    "GetSnapshot": _SERVICE,
    "ListSnapshots": _SERVICE,
    "SetTarget": _SERVICE,
    "SetInstanceTarget": _SERVICE,
    "PauseActions": _SERVICE,
    "ResumeActions": _SERVICE,
    "PromoteRollout": {**_SERVICE, "orderId": "o1", "stepNumber": 1},
    "AbortRollout": {**_SERVICE, "orderId": "o1", "stepNumber": 1},
    "RestartService": _SERVICE,
    "StopService": _SERVICE,
    "ListInstances": _SERVICE,
    "ListHistory": _SERVICE,
    "GetRollout": _SERVICE,
    "WatchService": _SERVICE,
    "GetControl": {},
    "SetControl": {"order": "CONTROL_ORDER_FREEZE", "by": {"comment": "test"}},
    "WhoAmI": {},
    "Explain": {},
    "Explain of others": {"identity": "admin"},
}

RECORDER: Final[dict[str, Body]] = {
    "ListEvents": {},
    "FindInstancesAt": {"time": "2100-01-01T00:00:00Z"},
    "CountInstancesOverTime": {"serviceId": "web", "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00Z"},
    "ListDecisions": {},
    "ReadLedger": {},
    "ReadFuses": {},
    "WhoAmI": {},
    "Explain": {},
    "Explain of others": {"identity": "admin"},
}

NOTICE_OF_N1: Final = sha256(b"web\0n1\0test").hexdigest()[:16]

WALLE: Final[dict[str, Body]] = {
    "GetProject": {"project": "web"},
    "ListProjects": {},
    "GetHost": {"host": "n1"},
    "ListHosts": {},
    "GetLimits": {"project": "web"},
    "GetLimits of all": {},
    "GetForecast": {"project": "web"},
    "ListIncidents": {},
    "ListNotices": {},
    "AcknowledgeNotice": {"notice": NOTICE_OF_N1, **_WHY},
    "GetScenario": {"scenario": "work-n1"},
    "ListScenarios": {},
    "GetSettings": {},
    "FollowFuses": {},
    "CreateProject": {"project": {"id": "web"}},
    "UpdateProject": {"project": "web", "reason": "test"},
    "UpdateProject to owners": {"project": "web", "setOwners": True, "owners": ["uploader-here"]},
    "DeleteProject": {"project": "web"},
    "SwitchAutomation off": {"project": "web", "reason": "test"},
    "SwitchAutomation on": {"project": "web", "on": True, "reason": "test"},
    "SwitchAutomation all off": _WHY,
    "SwitchAutomation all on": {"on": True, **_WHY},
    "AddHost": {"host": "n1", "project": "web"},
    "AddHost with bmc": {"host": "n1", "project": "web", "bmc": "10.1.1.1"},
    "ImportMachines": {"machines": [{"name": "n1", "project": ["web"]}]},
    "RemoveMachine": {"machine": "n1"},
    "ListMachines": {},
    "ChangeHost": {"host": "n1", "change": "HOST_CHANGE_MOVE", "project": "web"},
    "ChangeHost to mail": {"host": "n1", "change": "HOST_CHANGE_MOVE", "project": "mail", "release": True},
    "SetHostState": {"host": "n1", "state": "HOST_STATE_FREE"},
    "StartOperation": {"host": "n1", "kind": "OPERATION_KIND_DNS_FIX"},
    "StartOperation ignoring the CMS": {"host": "n1", "kind": "OPERATION_KIND_DNS_FIX", "ignoreCms": True},
    "CancelOperation": {"host": "n1"},
    "AddScenario": {"scenario": "work-n1", "kind": "SCENARIO_KIND_REBOOT", "hosts": ["n1"]},
    "AddScenario of a switch": {"scenario": "work-n1", "kind": "SCENARIO_KIND_SWITCH_MAINTENANCE", "switch": "s1"},
    "AgreeScenario": {"scenario": "work-n1", "project": "web", "reason": "test"},
    "EndScenario": {"scenario": "work-n1", "done": True, "reason": "test"},
    "SteerScenario": {"scenario": "work-n1", "steering": "STEERING_CONTINUE", "reason": "test"},
    "ReportChecks": _CHECKS,
    "TakeAlerts": {
        "version": "4",
        "alerts": [{"status": "resolved", "labels": {"alertname": "a", "check": "ssh", "host": "n1"}}],
    },
    "Freeze": {"frozen": True, **_WHY},
    "Freeze over": _WHY,
    "ReleaseTasks": {"project": "web", **_WHY},
    "OpenEpoch": _WHY,
    "WhoAmI": {},
    "Explain": {},
    "Explain of others": {"identity": "admin"},
}

_CMS: Final = "cms.v1.CmsService"
_NANNY: Final = "nanny.v1.NannyService"
_CONTENT: Final = b64encode(b"{service: web, instances: [{id: web-1}], revisions: [{id: v1}]}").decode()
_WALLE: Final = "walle.v1.WalleService"


def _instance(service: str, node: str) -> Body:
    revision = {"id": "r1", "target": "REVISION_TARGET_READY"}
    meta = {"id": f"{service}-1", "serviceId": service}
    allocation = {"host": "10.0.0.1", "port": [{"name": "http", "number": 8080}]}
    return {"instance": {"meta": meta, "spec": {"nodeName": node, "revision": [revision], "allocation": allocation}}}


def _task_on(node: str, name: str) -> Body:
    return {"task": {"id": name, "action": "reboot", "host": [node], "issuer": "ann"}}


SETUP: Final[dict[str, tuple[tuple[str, Any], ...]]] = {
    "hq": (
        ("hq.v1.InstanceService/CreateInstance", _instance("web", "n1")),
        ("hq.v1.InstanceService/CreateInstance", _instance("mail", "n2")),
        ("hq.v1.AdminService/SuspendNode", {"nodeName": "n1", **_NOW}),
        ("hq.v1.AdminService/SuspendNode", {"nodeName": "n2", **_NOW}),
    ),
    "cms": (
        ("cms.v1.CmsAdminService/Unfreeze", {"reason": "test"}),
        (f"{_CMS}/PutBudget", {"budget": {"name": "web", "service": "web", "minReady": "0"}}),
        (f"{_CMS}/PutBudget", {"budget": {"name": "mail", "service": "mail", "minReady": "0"}}),
        (f"{_CMS}/CreateTask", _task_on("n1", "task-n1")),
        (f"{_CMS}/CreateTask", _task_on("n2", "task-n2")),
        ("cms.wire/Create", ("POST", "/v1.4/tasks", {**_WIRE, "id": "wire-n1"})),
    ),
    "nanny": (
        (f"{_NANNY}/SetControl", {"order": "CONTROL_ORDER_UNFREEZE", "by": {"comment": "test"}}),
        (f"{_NANNY}/CreateService", {"serviceId": "web"}),
        (f"{_NANNY}/CreateService", {"serviceId": "mail"}),
        (f"{_NANNY}/CreateSnapshot", {"serviceId": "web", "content": _CONTENT}),
    ),
    "walle": (
        (f"{_WALLE}/Freeze", {"reason": "test"}),
        (f"{_WALLE}/CreateProject", {"project": {"id": "web", "owners": ["uploader-here"]}}),
        (f"{_WALLE}/CreateProject", {"project": {"id": "mail", "owners": ["uploader-there"]}}),
        (f"{_WALLE}/AddHost", {"host": "n1", "project": "web", "state": "HOST_STATE_FREE"}),
        (f"{_WALLE}/AddHost", {"host": "n2", "project": "mail", "state": "HOST_STATE_FREE"}),
        (f"{_WALLE}/ChangeHost", {"host": "n1", "change": "HOST_CHANGE_MOVE", "project": "web"}),
        (f"{_WALLE}/AddScenario", {"scenario": "work-n1", "kind": "SCENARIO_KIND_REBOOT", "hosts": ["n1"]}),
        (f"{_WALLE}/AddScenario", {"scenario": "work-n2", "kind": "SCENARIO_KIND_REBOOT", "hosts": ["n2"]}),
    ),
}
CHANGES: Final = (
    *(
        "ResumeNode",
        "wire Delete",
        "DeleteTask",
        "EndTask",
        "DeleteBudget",
        "Freeze",
        "DeleteService",
        "StopService",
        "SetControl",
    ),
    *("DeleteProject", "EndScenario", "SteerScenario", "ChangeHost to mail"),
)

# --- what stands before the servers -----------------------------------------------------------------------------------

CONSUL: Final = {
    "services": "/v1/catalog/services",
    "service web": "/v1/health/service/web",
    "service mail": "/v1/health/service/mail",
}
DNS: Final = {"web": "web.service.hq.internal", "mail": "mail.service.hq.internal"}
HOST_AGENT: Final[dict[str, Body]] = {
    "BeginReporting": _BEGIN,
    "ReportStatus": _REPORT,
    "GetRevision": {"instanceId": "web-1", "revisionId": "r1", "node": "n1"},
    "GetInstance": {"id": "web-1"},
    "WatchInstances": {"filter": {"instanceId": ["web-1"]}},
    "WhoAmI": {},
    "Explain": {},
}
_SAID: Final = {"reason": "test", "hours": "1", "cluster": "test", "comment": "test"}
CONSOLE: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "GET /": ("/", {}),
    "GET /find": ("/find?q=web-1", {}),
    "GET /services": ("/services", {}),
    "GET /services/{service}": ("/services/web", {}),
    "GET /instances": ("/instances", {}),
    "GET /services/{service}/snapshots": ("/services/web/snapshots", {}),
    "GET /services/{service}/snapshots/{snapshot}": ("/services/web/snapshots/none", {}),
    "POST /services/{service}/target": (
        "/services/web/target",
        {**_SAID, "target": "PREPARED", "snapshot": "ffffffff"},
    ),
    "POST /services/{service}/snapshots/{snapshot}/target": (
        "/services/web/snapshots/ffffffff/target",
        {**_SAID, "target": "PREPARED", "instance": "web-1"},
    ),
    "POST /services/{service}/actions/{order}": ("/services/web/actions/pause", _SAID),
    # Of a version that there is not: who may change it is told of a conflict, and nothing changes.
    "POST /services/{service}/attributes/head": (
        "/services/web/attributes/head",
        {**_SAID, "set": "on", "info_version": "999"},
    ),
    "GET /services/{service}/attributes": ("/services/web/attributes", {}),
    "POST /services/{service}/attributes": (
        "/services/web/attributes",
        {**_SAID, "step": "store", "content": "{}", "compared": content_mark(b"{}"), "info_version": "999"},
    ),
    "GET /services/{service}/edit": ("/services/web/edit", {}),
    "POST /services/{service}/edit": (
        "/services/web/edit",
        {**_SAID, "step": "store", "content": "id: web", "compared": content_mark(b"id: web\n")},
    ),
    "GET /instances/{cluster}/{instance}": ("/instances/test/web-1", {}),
    "GET /nodes": ("/nodes", {}),
    "GET /nodes/{node}": ("/nodes/n1", {}),
    "POST /nodes/{node}/suspend": ("/nodes/n1/suspend", _SAID),
    "POST /nodes/{node}/resume": ("/nodes/n1/resume", _SAID),
    "POST /guard/{cluster}/{way}": ("/guard/test/release", _SAID),
    "GET /many/{kind}": ("/many/nodes?order=suspend&chosen=n1", {}),
    "POST /many/{kind}": ("/many/nodes", {**_SAID, "order": "suspend", "chosen": "n1"}),
    "GET /disruptions": ("/disruptions", {}),
    "GET /disruptions/{task}": ("/disruptions/task-n1", {}),
    "GET /windows": ("/windows", {}),
    "POST /windows/{order}": (
        "/windows/put",
        {**_SAID, "name": "web", "service": "web", "begin": "00:00", "end": "24:00"},
    ),
    "GET /plan": ("/plan?hosts=n1", {}),
    "POST /cms/{order}": ("/cms/freeze", _SAID),
    "POST /disruptions/{task}/{order}": ("/disruptions/task-n1/extend", _SAID),
    "GET /hosts": ("/hosts", {}),
    "GET /hosts/{host}": ("/hosts/n1", {}),
    "POST /hosts/{host}/{order}": ("/hosts/n1/cancel", _SAID),
    "GET /projects": ("/projects", {}),
    "GET /projects/{project}": ("/projects/web", {}),
    "POST /projects/{project}/automation": ("/projects/web/automation", {**_SAID, "automation": "healing"}),
    "GET /scenarios": ("/scenarios", {}),
    "GET /scenarios/{scenario}": ("/scenarios/work-n1", {}),
    # Nobody is behind this switch, which the console says to whom it may show hosts, before it orders anything.
    "POST /scenarios": ("/scenarios", {**_SAID, "switch": "s1", "scenario": "work-s1", "ticket": "T-1"}),
    "POST /scenarios/{scenario}/end": ("/scenarios/work-n1/end", _SAID),
    "POST /scenarios/{scenario}/agree": ("/scenarios/work-n1/agree", {**_SAID, "project": "web"}),
    "POST /scenarios/{scenario}/steer": ("/scenarios/work-n1/steer", {**_SAID, "steering": "pause"}),
    "GET /events": ("/events", {}),
    "GET /signin": ("/signin", {}),
    "POST /signin": ("/signin", {"token": "forged", "to": "/"}),
    "POST /signout": ("/signout", {}),
}
