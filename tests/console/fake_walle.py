"""A stand-in for Wall-E: two racks, one operation, a dead host, a fuse that is out, and planned work that waits."""

from __future__ import annotations

import time
from typing import Any

from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import NotFound, PermissionDenied
from serving.rights.reach import SHOWN
from serving.rights.rules import READ, AuditLevel, Role, Rule
from tests.console.scene import HOSTILE
from wallepb.v1 import host_pb2 as hpb
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as pb

ORDER = Rule("change projects and hosts", frozenset({Role.UPLOADER, Role.OPERATOR, Role.ADMIN}), AuditLevel.WRITES)
_ORDERS = (
    *(pb.SwitchAutomationRequest, pb.SetHostStateRequest, pb.StartOperationRequest),
    *(pb.CancelOperationRequest, pb.AddScenarioRequest, pb.EndScenarioRequest, pb.AgreeScenarioRequest),
    pb.SteerScenarioRequest,
)


class FakeWalle:
    """Attributes:
    orders: what came, in order, as (call, request).
    """

    def __init__(self) -> None:
        self.orders: list[tuple[str, Any]] = []
        now = int(time.time())
        self.incidents = ["rack-9 of dc: 12 of 12 fail"]
        self.hosts = [self._host(f"host-{n:02}", f"rack-{n % 2}") for n in range(24)]
        dead, busy, ailing = (self.hosts[n].host for n in (1, 2, 4))
        dead.status, dead.status_reason = hpb.HOST_STATUS_DEAD, HOSTILE
        busy.operation.kind, busy.operation.stage = hpb.OPERATION_KIND_REBOOT, hpb.STAGE_APPROVAL
        busy.operation.message, busy.operation.by = "waits for the CMS", "automation"
        busy.operation.task.add(id="reboot-1", cms="default", verdict=hpb.VERDICT_IN_PROCESS, message="web has no room")
        ailing.check.add(name="ssh", failing=True, source="alertmanager", text=HOSTILE).since.seconds = now - 400
        self.hosts[4].decision, self.hosts[4].blocked = "reboot for ssh", "healing is off"
        dead.history.add(kind=hpb.OPERATION_KIND_PROFILE, outcome=hpb.OUTCOME_FAILED, message=HOSTILE, by="automation")
        self.project = pb.GetProjectResponse(hosts=24, warnings=["nobody receives critical notices"])
        self.project.project.id, self.project.project.name = "search", "Search"
        self.project.project.owners.append("web-uploader")
        healing = self.project.fuse.healing
        healing.off, healing.tripped_by = True, "1d:10"
        healing.reason = f"limit ssh 1d:10 would be exceeded {HOSTILE}"
        healing.time.seconds = now - 900
        self.project.fuse.mark.add(counter="ssh", host="host-03").time.seconds = now - 1_000
        self.scenario = ppb.Scenario(
            id="s1-upgrade", switch="s1", by="bob", reason="new firmware", message="2 of 3 agree", group_id="g"
        )
        self.scenario.stage = ppb.SCENARIO_STAGE_ASKING
        self.scenario.created.seconds = now - 1_200
        self.scenario.host.add(name="host-00").task.add(cms="default", verdict=hpb.VERDICT_OK)
        waits = self.scenario.host.add(name="host-02").task.add(cms="default", verdict=hpb.VERDICT_IN_PROCESS)
        waits.message = f"web has no room; bob holds rack-7 {HOSTILE}"
        self.scenario.host.add(name="host-04").by_hand.append("https://cms.example")
        self.waves = self._in_waves()

    def _in_waves(self) -> ppb.Scenario:
        """A mass reboot by racks: one rack is over, a host of the next one failed, and it has stopped."""
        one = ppb.Scenario(id="kernel", by="bob", reason="new kernel")
        one.kind, one.stage = ppb.SCENARIO_KIND_REBOOT, ppb.SCENARIO_STAGE_PAUSED
        one.wave_size, one.by_domain, one.message = "10%", "rack", "1 of 4 failed: host-03"
        for number in range(6):
            host = one.host.add(name=f"host-{number:02}", domain=f"rack-{number // 2}", operation_id=f"op-{number}")
            if number < 3:
                host.outcome = hpb.OUTCOME_DONE
        one.host[3].outcome, one.host[3].problem = hpb.OUTCOME_FAILED, f"kernel panic {HOSTILE}"
        one.host[4].operation_id = one.host[5].operation_id = ""
        return one

    def methods(self) -> list[Method]:
        """What it serves."""
        table = ServiceTable("walle.v1.WalleService")
        reads = {
            pb.ListHostsRequest: self._list,
            pb.GetHostRequest: lambda r: self._known(r.host),
            pb.ListProjectsRequest: lambda r: pb.ListProjectsResponse(projects=[self.project]),
            pb.GetProjectRequest: lambda r: self._project(r.project),
            pb.GetLimitsRequest: lambda r: pb.GetLimitsResponse(
                usage=[pb.Usage(counter="ssh", pair="1d:10", used=10, hosts=["host-03"])]
            ),
            pb.GetForecastRequest: self._forecast,
            pb.ListIncidentsRequest: lambda r: pb.ListIncidentsResponse(incidents=self.incidents),
            pb.ListScenariosRequest: self._scenarios,
            pb.GetScenarioRequest: self._scenario,
            pb.GetSettingsRequest: lambda r: pb.GetSettingsResponse(acting="walle-1"),
        }
        made = [table.unary(kind, _answering(run), READ, SHOWN) for kind, run in reads.items()]
        return [*made, *(table.unary(kind, self._ordering, ORDER, SHOWN) for kind in _ORDERS)]

    def _host(self, name: str, rack: str) -> pb.GetHostResponse:
        made = pb.GetHostResponse()
        made.host.name, made.host.project = name, "search"
        made.host.status, made.host.state = hpb.HOST_STATUS_READY, hpb.HOST_STATE_ASSIGNED
        made.host.location.dc, made.host.location.rack, made.host.location.switch = "dc", rack, "s1"
        return made

    def _list(self, request: pb.ListHostsRequest) -> pb.ListHostsResponse:
        found = [one for one in self.hosts if request.switch in ("", one.host.location.switch)]
        return pb.ListHostsResponse(hosts=found)

    def _known(self, host: str) -> pb.GetHostResponse:
        for one in self.hosts:
            if one.host.name == host:
                return one
        raise NotFound(f"host {host}: there is none")

    def _project(self, project: str) -> pb.GetProjectResponse:
        if project != "search":
            raise NotFound(f"project {project}: there is none")
        return self.project

    def _forecast(self, request: pb.GetForecastRequest) -> pb.GetForecastResponse:
        trips = request.credits.get("ssh", 0) < 140
        return pb.GetForecastResponse(
            trips=trips, lines=["ssh: 140 hosts wait, the limit is 10"], decisions=["host-04: reboot"]
        )

    def _scenarios(self, request: pb.ListScenariosRequest) -> pb.ListScenariosResponse:
        """One on the second page; the first has what is over."""
        if request.open or request.page_token:
            return pb.ListScenariosResponse(scenarios=[self.scenario])
        over = ppb.Scenario(id="s0-upgrade", stage=ppb.SCENARIO_STAGE_FINISHED)
        return pb.ListScenariosResponse(scenarios=[over], next_page_token=over.id)

    def _scenario(self, request: pb.GetScenarioRequest) -> pb.GetScenarioResponse:
        for one in (self.scenario, self.waves):
            if one.id == request.scenario:
                return pb.GetScenarioResponse(scenario=one)
        raise NotFound(f"scenario {request.scenario}: there is none")

    def _ordering(self, request: Any, call: Call) -> Answer:
        access = call.access
        if access.is_checked and not {Role.OPERATOR, Role.ADMIN} & access.grants.keys():
            assert access.identity is not None
            if access.identity.name not in self.project.project.owners:
                raise PermissionDenied(f"{access.identity.name} is not authorized to change project search")
        name = type(request).__name__.removesuffix("Request")
        self.orders.append((name, request))
        if name == "SwitchAutomation" and request.on:
            self.project.fuse.healing.Clear()
        if name == "EndScenario":
            self.scenario.stage = ppb.SCENARIO_STAGE_RETURNING
        return MessageAnswer(getattr(pb, f"{name}Response")())


def _answering(run: Any) -> Any:
    def answer(request: Any, call: Call) -> Answer:
        return MessageAnswer(run(request))

    return answer
