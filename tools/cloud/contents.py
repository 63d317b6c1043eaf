"""What there is to look at in the cloud beside simulated instances: hosts, a service of Nanny's; and trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import grpc
import yaml

from cmspb.v1 import cms_pb2 as cpb
from cmspb.v1.cms_stubs import CmsServiceStub
from nannypb.v1 import service_pb2 as npb
from nannypb.v1.service_stubs import NannyServiceStub
from tools.cloud.parts import NODES, sites
from tools.cloud.setting import SERVICES, node_name
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as wpb
from wallepb.v1.service_stubs import WalleServiceStub

PROJECT: Final = "cloud"
SERVICE: Final = "shop"
LAB: Final = "lab"  # a project of Wall-E with a fuse that has tripped
SWITCH: Final = "s-east-r3"
SCENARIO: Final = "NET-7"
_FIRST_NODE: Final = 6  # of the service: it has no instance in the dark rack, nor in the switch's
_MOVED: Final = "east-n10"  # somebody's host, in another rack than the switch's
EACH: Final = 4  # instances of the service in each location
_AGAIN_S: Final = 0.2
_TRIES: Final = 150


def write_files(directory: Path) -> None:
    """Write what the commands that the cloud prints apply: budgets that allow more for brief work, and a freeze."""
    brief = {"maxUnavailable": "50%", "within": "15m"}
    budgets = [{"name": one, "service": one, "maxUnavailable": "10%", "brief": brief} for one in SERVICES]
    (directory / "brief.yaml").write_text(yaml.safe_dump_all(budgets))
    begin = datetime.now(UTC).date()
    period = {"begin": str(begin), "end": str(begin + timedelta(days=3)), "reason": "a quiet weekend"}
    (directory / "freeze.yaml").write_text(yaml.safe_dump({"name": "freeze", "freeze": [period]}))


async def fill(started: Mapping[str, str]) -> None:
    """Add every host to a project of Wall-E that asks the CMS, and let Nanny roll out a service."""
    async with grpc.aio.insecure_channel(started["walle"]) as channel:
        await _add_hosts(WalleServiceStub(channel), started["cms"])
    async with grpc.aio.insecure_channel(started["nanny"]) as channel:
        await _create_service(NannyServiceStub(channel))


async def second_version(started: Mapping[str, str]) -> None:
    """Activate one more snapshot of the service, so that there is one to go back to."""
    async with grpc.aio.insecure_channel(started["nanny"]) as channel:
        await _until_active(NannyServiceStub(channel))
        await _activate(NannyServiceStub(channel), "v2", "second version", ["serve"])


async def trouble(started: Mapping[str, str], darken: Callable[[], Awaitable[None]]) -> None:
    """Make trouble that stays until somebody acts.

    A rack is dark and healing is off, a version whose processes end again and again stopped itself at its canary, a
    switch upgrade waits for a host that somebody holds and for the services below their floor, and more disks failed in
    another project than its fuse lets pass.

    `darken`: returns when the rack's instances have expired, so that the upgrade finds no room.
    """
    async with AsyncExitStack() as stack:
        cms, nanny, walle = [
            await stack.enter_async_context(grpc.aio.insecure_channel(started[name]))
            for name in ("cms", "nanny", "walle")
        ]
        await _until_active(NannyServiceStub(nanny))
        await _begin_with_a_canary(NannyServiceStub(nanny))
        await _activate(NannyServiceStub(nanny), "v2", "faster search", ["timeout", "12", "serve"])
        off = wpb.SwitchAutomationRequest(project=PROJECT, automation="healing", on=False)
        off.reason = "dora: a new version of the executor is being tried"
        await WalleServiceStub(walle).SwitchAutomation(off)
        held = cpb.Task(id="move-east-n10", action="power-off", host=[_MOVED], issuer="bob", type="manual")
        held.comment = "bob: moved to another row"
        await CmsServiceStub(cms).CreateTask(cpb.CreateTaskRequest(task=held))
        await _trip(WalleServiceStub(walle), started["cms"])
        await darken()
        request = wpb.AddScenarioRequest(scenario=SCENARIO, kind=ppb.SCENARIO_KIND_SWITCH_MAINTENANCE, switch=SWITCH)
        request.ticket, request.reason = SCENARIO, "new firmware"
        await WalleServiceStub(walle).AddScenario(request)


async def _add_hosts(walle: Any, cms: str) -> None:
    await _add_project(walle, ppb.Project(id=PROJECT, name="The whole cloud"), cms)
    for host, place in sites().items():
        await _add_host(walle, PROJECT, host, place)


async def _add_project(walle: Any, project: ppb.Project, cms: str) -> None:
    project.cms.add(url=f"http://{cms}", version="v1.4")
    await _taken(walle.CreateProject, wpb.CreateProjectRequest(project=project))


async def _add_host(walle: Any, project: str, host: str, place: Mapping[str, str]) -> None:
    request = wpb.AddHostRequest(host=host, project=project)
    request.location.dc, request.location.rack, request.location.switch = (
        place[name] for name in ("dc", "rack", "switch")
    )
    await _taken(walle.AddHost, request)


async def _trip(walle: Any, cms: str) -> None:
    """Make a project without instances, whose limit allows one host with a bad disk a day: three have one."""
    project = ppb.Project(id=LAB, name="The laboratory")
    project.limits["disk"].pair.add(period_s=86_400, count=1)
    await _add_project(walle, project, cms)
    report = wpb.ReportChecksRequest()
    for number in range(1, 4):
        host, rack = f"lab-n{number}", f"lab-r{number}"
        await _add_host(walle, LAB, host, {"dc": "east", "rack": rack, "switch": f"s-{rack}"})
        report.hosts.add(host=host).check.add(name="disk", failing=True, text="2 sectors cannot be read")
    await _taken(walle.ReportChecks, report)


async def _taken(call: Any, request: Any) -> None:
    """Repeat an order until it is taken: a host is refused until its project is there. Raises AioRpcError."""
    for left in reversed(range(_TRIES)):
        try:
            await call(request)
        except grpc.aio.AioRpcError as error:
            if not left or error.code() not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE):
                raise
            await asyncio.sleep(_AGAIN_S)
        else:
            return


async def _create_service(nanny: Any) -> None:
    policy = npb.RolloutPolicy(min_ready_s=1, soak_s=5, max_unavailable="1", progress_deadline_s=20)
    made = npb.CreateServiceRequest(service_id=SERVICE, info=npb.InfoAttributes(rollout=policy))
    await _taken(nanny.CreateService, made)
    await _activate(nanny, "v1", "first version", ["serve"])


async def _begin_with_a_canary(nanny: Any) -> None:
    """Let roll-outs of the service first switch one instance, with little traffic, and watch it for a while."""
    steps = npb.InfoAttributes()
    steps.rollout.step.add(instances="1", weight="10%")
    steps.rollout.step.add(hold_s=120)
    request = npb.UpdateServiceRequest(service_id=SERVICE, info=steps)
    request.update_mask.paths.append("rollout.step")
    await nanny.UpdateService(request)


async def _until_active(nanny: Any) -> None:
    async with asyncio.timeout(60):
        while True:
            found = (await nanny.GetService(npb.GetServiceRequest(service_id=SERVICE))).service
            if any(one.current == npb.CURRENT_STATE_ACTIVE for one in found.snapshot):
                return
            await asyncio.sleep(_AGAIN_S)


async def _activate(nanny: Any, title: str, comment: str, command: list[str]) -> None:
    instances = [
        {"id": f"{SERVICE}-{name}-{n + 1}", "node": node_name(name, n + _FIRST_NODE), "installation": name}
        for name in NODES
        for n in range(EACH)
    ]
    container = {"name": SERVICE, "command": command}
    content = yaml.safe_dump(
        {"service": SERVICE, "instances": instances, "revisions": [{"id": title, "container": [container]}]}
    )
    by = npb.Authorship(author="ann", comment=comment)
    request = npb.CreateSnapshotRequest(service_id=SERVICE, content=content.encode(), by=by)
    snapshot = (await nanny.CreateSnapshot(request)).snapshot.id
    order = npb.SetTargetRequest(service_id=SERVICE, snapshot_id=snapshot, target=npb.TARGET_ACTIVE, by=by)
    await nanny.SetTarget(order)
