"""Who may order what at Wall-E, over real sockets: owners, scopes of nodes and services, agents, and the audit log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from control import EventRefused, Stored, UnreadableEvent
from serving.encoding.jsonio import MOST_ITEMS
from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import Role
from serving.rights.stored import encode_access
from tests.support.sample_instances import eventually
from tests.support.walle.guarded import POLICY, Guarded, guarded
from tests.support.walle.running import pretending
from walle.outgoing.destinations import CmsEndpoint, Destinations, parse_url
from walle.reach import ORDER
from walle.work.book import SCENARIO, Notice
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_FREE,
    HOST_STATE_MAINTENANCE,
    HOST_STATE_PROBATION,
    HOST_STATUS_DEAD,
    HOST_STATUS_READY,
    OPERATION_KIND_REBOOT,
    OUTCOME_FAILED,
    OUTCOME_REJECTED,
    Host,
    Intent,
    LastRepair,
    Machine,
    Operation,
    Task,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_REBOOT,
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    SCENARIO_STAGE_WORKING,
    SEVERITY_ERROR,
    Cms,
    Limit,
    Notifications,
    PeriodCount,
    Project,
    Recipient,
    Scenario,
    ScenarioHost,
    Scheme,
)

FULL = Path("/dev/full")
CMS = "https://cms.test"
DENIED = (403, 404)  # 404: what is out of reach is not there


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Guarded]:
    """Project `web` of web-uploader with hosts lab-1 and prod-1."""
    async with guarded(tmp_path) as made:
        await prepare(made)
        yield made


async def prepare(made: Guarded) -> None:
    assert (
        await made.status("admin", pb.CreateProjectRequest(project=Project(id="web", owners=["web-uploader"]))) == 200
    )
    for host in ("lab-1", "prod-1"):
        assert await made.status("admin", pb.AddHostRequest(host=host, project="web", state=HOST_STATE_FREE)) == 200


def on_host(host: str) -> list[Message]:
    """Every order about a host."""
    report = pb.HostChecks(host=host, check=[pb.CheckReport(name="ssh", failing=True)])
    return [
        pb.SetHostStateRequest(host=host, state=HOST_STATE_MAINTENANCE),
        pb.StartOperationRequest(host=host, kind=OPERATION_KIND_REBOOT),
        pb.CancelOperationRequest(host=host),
        pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_REBOOT, hosts=[host]),
        pb.ReportChecksRequest(hosts=[report]),
        pb.ChangeHostRequest(host=host, change=pb.HOST_CHANGE_MOVE, project="web"),
        pb.ChangeHostRequest(host=host, change=pb.HOST_CHANGE_REMOVE),
        pb.AddHostRequest(host=host, project="web"),
    ]


IN_PROJECT: list[Message] = [
    pb.UpdateProjectRequest(project="web", set_owners=True, owners=["lab-operator"]),
    pb.SwitchAutomationRequest(project="web", reason="no"),
    pb.SwitchAutomationRequest(project="web", on=True, reason="yes"),
    pb.AgreeScenarioRequest(scenario="s", project="web", reason="yes"),
    pb.ReleaseTasksRequest(project="web", reason="looked"),
    pb.DeleteProjectRequest(project="web"),
]

STOPS: list[Message] = [
    pb.FreezeRequest(frozen=True, reason="all is red"),
    pb.SwitchAutomationRequest(reason="all is red"),
]

BEGINS: list[Message] = [
    pb.CreateProjectRequest(project=Project(id="mine")),
    pb.FreezeRequest(frozen=False, reason="over"),
    pb.SwitchAutomationRequest(on=True, reason="over"),
    pb.OpenEpochRequest(reason="looked"),
    pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_SWITCH_MAINTENANCE, switch="s1"),
]


@pytest.mark.parametrize("who", ["lab-operator", "lab-admin"])
async def test_an_operator_or_admin_of_some_nodes_orders_on_these_hosts_and_no_others(one: Guarded, who: str) -> None:
    for order in on_host("prod-1"):
        assert await one.status(who, order) in DENIED, order
    for order in on_host("lab-1"):
        assert await one.status(who, order) != 403, order


@pytest.mark.parametrize("who", ["lab-operator", "lab-admin", "web-admin"])
async def test_a_scoped_role_orders_nothing_in_projects_that_it_does_not_own(one: Guarded, who: str) -> None:
    for order in IN_PROJECT:
        assert await one.status(who, order) in DENIED, order


async def test_an_admin_of_some_services_reaches_no_host_by_that(one: Guarded) -> None:
    for order in on_host("lab-1"):
        assert await one.status("web-admin", order) in DENIED, order


@pytest.mark.parametrize("who", ["lab-operator", "lab-admin", "web-admin", "ams-admin", "web-uploader"])
async def test_orders_that_concern_everything_need_a_role_without_a_scope(one: Guarded, who: str) -> None:
    for order in [*STOPS, *BEGINS]:
        assert await one.status(who, order) == 403, order


async def test_an_operator_without_a_scope_stops_everything_and_only_an_admin_starts_everything_again(
    one: Guarded,
) -> None:
    for order in STOPS:
        assert await one.status("operator", order) == 200, order
    for order in BEGINS:
        assert await one.status("operator", order) == 403, order
        assert await one.status("admin", order) != 403, order


async def test_an_owner_orders_on_its_hosts_but_cannot_ignore_a_cms_or_set_an_address(one: Guarded) -> None:
    imported = pb.ImportMachinesRequest(machines=[Machine(name="h9", project=["web"])])
    assert await one.status("admin", imported) == 200
    assert await one.status("web-uploader", pb.AddHostRequest(host="h9", project="web", state=HOST_STATE_FREE)) == 200
    for privileged in (
        pb.StartOperationRequest(host="prod-1", kind=OPERATION_KIND_REBOOT, ignore_cms=True),
        pb.ChangeHostRequest(host="prod-1", change=pb.HOST_CHANGE_PREPARE, ignore_cms=True),
        pb.AddHostRequest(host="h8", project="web", ignore_cms=True),
        pb.AddHostRequest(host="h8", project="web", bmc="10.7.0.8"),
        pb.AddHostRequest(host="h8", project="web", address=["10.7.0.8"]),
    ):
        assert await one.status("web-uploader", privileged) == 403, privileged
    ignoring = pb.StartOperationRequest(host="lab-1", kind=OPERATION_KIND_REBOOT, ignore_cms=True)
    assert await one.status("lab-operator", ignoring) == 200


async def test_an_order_whose_host_left_its_author_s_reach_before_it_took_effect_does_nothing(one: Guarded) -> None:
    owner = Access(
        Identity("web-uploader", ProofKind.TOKEN, 0.0), ORDER, {Role.UPLOADER: (Scope(services=Patterns(["web"])),)}
    )
    stored = pb.Order(by="web-uploader", access=encode_access(owner))
    stored.start_operation.CopyFrom(pb.StartOperationRequest(host="prod-1", kind=OPERATION_KIND_REBOOT))
    assert await one.status("admin", pb.CreateProjectRequest(project=Project(id="other"))) == 200
    moved = pb.ChangeHostRequest(host="prod-1", change=pb.HOST_CHANGE_MOVE, project="other")
    assert await one.status("admin", moved) == 200
    with pytest.raises(EventRefused, match="host prod-1 does not exist") as refused:
        await one.walle.server.automaton.orders.submit("host/prod-1", stored, request_id="late", timeout_s=10.0)
    assert refused.value.code == "NOT_FOUND"
    assert not one.walle.of("prod-1").HasField("operation")


@pytest.mark.long
async def test_planned_work_leaves_out_hosts_that_left_its_author_s_reach_and_its_grants_are_not_shown(
    one: Guarded,
) -> None:
    assert await one.status("admin", pb.CreateProjectRequest(project=Project(id="other"))) == 200
    work = pb.AddScenarioRequest(
        scenario="kernel", kind=SCENARIO_KIND_REBOOT, hosts=["lab-1", "prod-1"], at_once=1, verify="none"
    )
    assert await one.status("admin", pb.FreezeRequest(frozen=True, reason="so that it waits")) == 200
    assert await one.status("web-uploader", work) == 200
    moved = pb.ChangeHostRequest(host="prod-1", change=pb.HOST_CHANGE_MOVE, project="other")
    assert await one.status("admin", moved) == 200
    for request in (pb.GetScenarioRequest(scenario="kernel"), pb.ListScenariosRequest()):
        _, answer = await one.call("admin", request)
        assert "kernel" in json.dumps(answer)
        assert "grants" not in json.dumps(answer)
    assert await one.status("admin", pb.FreezeRequest(reason="over")) == 200

    def left_out() -> bool:
        return any("prod-1 does not exist" in host.problem for host in one.walle.scenario("kernel").host)

    await one.walle.until(left_out, "prod-1 is left out")
    assert not one.walle.of("prod-1").HasField("operation")


async def test_a_pattern_of_planned_work_stands_for_hosts_in_use_that_its_author_reaches(one: Guarded) -> None:
    assert await one.status("admin", pb.CreateProjectRequest(project=Project(id="other"))) == 200
    for host, project in (("lab-2", "web"), ("lab-3", "other")):
        assert await one.status("admin", pb.AddHostRequest(host=host, project=project, ignore_cms=True)) == 200
        await one.walle.until(lambda name=host: one.walle.of(name).state == HOST_STATE_ASSIGNED, host)  # type: ignore[misc]
    for who, names in (
        ("web-uploader", ["lab-2"]),
        ("lab-operator", ["lab-2", "lab-3"]),
        ("admin", ["lab-2", "lab-3"]),
    ):
        work = pb.AddScenarioRequest(scenario=who, kind=SCENARIO_KIND_REBOOT, hosts=["*"])
        assert await one.status(who, work) == 200
        assert [host.name for host in one.walle.scenario(who).host] == names
    work = pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_REBOOT, hosts=["lab-*"], project="other")
    assert await one.status("web-uploader", work) == 400, "nothing is left"
    work = pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_REBOOT, hosts=["lab-2", "lab-3"])
    assert await one.status("web-uploader", work) in DENIED, "a name that it does not reach"


async def test_an_order_whose_author_lost_its_rights_before_it_took_effect_says_so(one: Guarded) -> None:
    owner = Access(
        Identity("lab-operator", ProofKind.TOKEN, 0.0), ORDER, {Role.OPERATOR: (Scope(nodes=Patterns(["lab-*"])),)}
    )
    stored = pb.Order(by="lab-operator", access=encode_access(owner))
    stored.start_operation.CopyFrom(pb.StartOperationRequest(host="lab-1", kind=OPERATION_KIND_REBOOT))
    one.files.policy.write_text(POLICY.replace("lab-operator", "somebody-else"))

    async def is_in_force() -> bool:
        return await one.status("lab-operator", pb.CancelOperationRequest(host="lab-1")) == 403

    await eventually(is_in_force, 20.0, "the policy is in force")
    with pytest.raises(EventRefused, match="rights of its author were withdrawn since it was ordered"):
        await one.walle.server.automaton.orders.submit("host/lab-1", stored, request_id="late", timeout_s=10.0)
    assert not one.walle.of("lab-1").HasField("operation")


async def test_an_owner_that_has_lost_the_role_of_operator_imports_nothing_with_an_old_order(one: Guarded) -> None:
    """The order says that it may import, which is checked again where it takes effect."""
    author = Identity("web-uploader", ProofKind.TOKEN, 0.0)
    given = Access(author, ORDER, {Role.UPLOADER: (Scope(services=Patterns(["web"])),), Role.OPERATOR: (Scope(),)})
    stored = pb.Order(by="web-uploader", access=encode_access(given), may_import=True)
    stored.add_host.CopyFrom(pb.AddHostRequest(host="h9", project="web", state=HOST_STATE_FREE))
    with pytest.raises(EventRefused, match="rights of its author were withdrawn since it was ordered"):
        await one.walle.server.automaton.orders.submit("inventory", stored, request_id="late", timeout_s=10.0)
    assert "h9" not in one.walle.server.automaton.machines


async def test_an_order_with_grants_of_a_newer_version_waits_for_it(one: Guarded) -> None:
    stored = pb.Order(by="ann", access='{"name": "ann", "grants": {"operator": [{"racks": ["r1"]}]}}')
    stored.start_operation.CopyFrom(pb.StartOperationRequest(host="lab-1", kind=OPERATION_KIND_REBOOT))
    handle: Any = one.walle.server.automaton.orders._handle
    with pytest.raises(UnreadableEvent, match="grants that this version does not know: upgrade it"):
        handle(None, "host/lab-1", stored)
    assert not one.walle.of("lab-1").HasField("operation")


async def test_addresses_of_bmcs_and_cmss_are_shown_only_to_those_who_repair(one: Guarded) -> None:
    add = pb.AddHostRequest(host="lab-9", project="web", state=HOST_STATE_FREE, bmc="10.7.0.9")
    assert await one.status("admin", add) == 200
    for who, is_shown in (("operator", True), ("lab-operator", True), ("web-uploader", True), ("agent/lab-9", False)):
        status, told = await one.call(who, pb.GetHostRequest(host="lab-9"))
        assert (status, "10.7.0.9" in json.dumps(told)) == (200, is_shown), who


async def test_outputs_of_executors_are_shown_only_to_those_who_repair(one: Guarded) -> None:
    one.walle.of("lab-1").history.add(message="root@10.7.0.1 refused", output="root@10.7.0.1: permission denied")
    for who, is_shown in (("operator", True), ("lab-operator", True), ("web-uploader", True), ("agent/lab-1", False)):
        for request in (pb.GetHostRequest(host="lab-1"), pb.ListHostsRequest()):
            status, seen = await one.call(who, request)
            assert (status, "root@10.7.0.1" in json.dumps(seen)) == (200, is_shown), (who, request)


async def test_addresses_of_webhooks_are_shown_only_to_those_who_repair(one: Guarded) -> None:
    recipient = Recipient(severity=SEVERITY_ERROR, address="https://chat.example/hook/word")
    one.walle.server.automaton.projects["web"].notifications.recipient.append(recipient)
    for who, is_shown in (("operator", True), ("web-uploader", True), ("reader", False)):
        for request in (pb.GetProjectRequest(project="web"), pb.ListProjectsRequest()):
            status, seen = await one.call(who, request)
            assert (status, "/hook/" in json.dumps(seen)) == (200, is_shown), (who, request)


async def test_notices_are_shown_only_to_those_who_repair(one: Guarded) -> None:
    """They say what executors and CMSs answered, and who is notified."""
    walle = one.walle.server.automaton
    about = (("", ""), ("web", ""), ("web", "lab-1"), ("web", "prod-1"))
    walle.outbox.send(Notice(SEVERITY_ERROR, project, f"of {project}/{host}", host) for project, host in about)
    await eventually(lambda: len(walle.notices) == 4, 10.0, "they are stored")
    sees = {"operator": 4, "lab-operator": 1, "web-uploader": 3, "lab-admin": 1, "reader": 0, "agent/lab-1": 0}
    for who, count in sees.items():
        status, seen = await one.call(who, pb.ListNoticesRequest())
        assert (status, len(seen.get("notices", []))) == (200, count), who
    of_all = next(one.id for one in walle.notices.values() if not one.project)
    for who in ("lab-operator", "web-uploader", "reader", "agent/lab-1"):
        assert await one.status(who, pb.AcknowledgeNoticeRequest(notice=of_all, reason="x")) in DENIED, who
    assert await one.status("operator", pb.AcknowledgeNoticeRequest(notice=of_all, reason="x")) == 200


SECRETS = ("CANARY-BUDGET", "CANARY-OUTPUT", "cms.canary.example", "CANARY-HOST")


async def test_texts_about_a_host_show_a_caller_without_repair_rights_nothing_of_others(one: Guarded) -> None:
    """The answer of a CMS names who holds a budget; the reason why the global fuse tripped names hosts of others."""
    walle = one.walle.server.automaton
    host, project = one.walle.of("lab-1"), walle.projects["web"]
    host.listed, project.cms[0].url = True, "https://cms.canary.example"
    host.check.add(name="ssh", failing=True, since_ms=1)
    walle.world.settle_ms, host.state = 0, HOST_STATE_PROBATION
    assert await one.status("admin", pb.SwitchAutomationRequest(reason="too many of CANARY-HOST")) == 200
    work = Operation(id="op", message="CANARY-OUTPUT")
    work.task.add(id="t", cms="main", message="budget mail: CANARY-BUDGET")
    work.intent.output = "CANARY-OUTPUT"
    for who, seen in (("operator", SECRETS), ("web-uploader", SECRETS[:3]), ("agent/lab-1", ())):
        answers = []
        for request in (pb.GetHostRequest(host="lab-1"), pb.ListHostsRequest(), pb.GetProjectRequest(project="web")):
            answers.append(await one.call(who, request))
            host.operation.CopyFrom(work)
            answers.append(await one.call(who, request))
            host.ClearField("operation")
            walle.world.epoch = lambda: "restored"
            answers.append(await one.call(who, request))
            walle.world.epoch = lambda: ""
        text = json.dumps(answers)
        assert [word for word in SECRETS if word in text and word not in seen] == [], who
        assert [word for word in seen if word not in text] == [], "who may, is shown it"
        assert "healing is off for all projects" in text


async def test_answers_of_cmss_about_planned_work_are_shown_only_to_those_who_repair_all_of_its_hosts(
    one: Guarded,
) -> None:
    work = Scenario(id="s", by="somebody", host=[ScenarioHost(name="lab-1")])
    work.host[0].task.add(id="t", cms="main", message="budget mail: CANARY-BUDGET")
    one.walle.server.automaton.controller.records(SCENARIO)._stored["s"] = Stored(work, 1)
    for who, is_shown in (("operator", True), ("lab-operator", True), ("web-uploader", True), ("agent/lab-1", False)):
        for request in (pb.GetScenarioRequest(scenario="s"), pb.ListScenariosRequest()):
            status, seen = await one.call(who, request)
            assert (status, "CANARY-BUDGET" in json.dumps(seen)) == (200, is_shown), (who, request)


HIDDEN = {"message", "output", "handle", "before", "problem", "cms", "url", "by_hand", "bmc", "pending"}


def fill(message: Any) -> Any:
    """Write CANARY into every field of a name that stands for words of executors and CMSs, or for addresses."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE and not field.message_type.GetOptions().map_entry:
            for one in value if isinstance(value, Sequence) else [value]:
                fill(one)
    for field in message.DESCRIPTOR.fields:
        if field.name in HIDDEN and field.type == field.TYPE_STRING:
            if isinstance(getattr(message, field.name), str):
                setattr(message, field.name, "CANARY")
            else:
                getattr(message, field.name).append("CANARY")
    return message


EVERY_READ: list[Message] = [
    pb.GetHostRequest(host="lab-1"),
    pb.ListHostsRequest(),
    pb.ListMachinesRequest(),
    pb.GetProjectRequest(project="web"),
    pb.ListProjectsRequest(),
    pb.GetLimitsRequest(project="web"),
    pb.GetForecastRequest(project="web"),
    pb.ListIncidentsRequest(),
    pb.GetScenarioRequest(scenario="s"),
    pb.ListScenariosRequest(),
    pb.GetSettingsRequest(),
    pb.ListNoticesRequest(),
]


async def test_no_read_shows_addresses_and_words_of_executors_and_cmss_to_those_who_do_not_repair(one: Guarded) -> None:
    walle = one.walle.server.automaton
    host, now_ms = one.walle.of("lab-1"), walle.ledger.now().ms
    host.listed, host.state, walle.world.settle_ms = True, HOST_STATE_ASSIGNED, 0
    host.check.add(name="ssh", failing=True, since_ms=1)
    host.last_repair.CopyFrom(
        LastRepair(check="ssh", kind=OPERATION_KIND_REBOOT, outcome=OUTCOME_REJECTED, at_ms=now_ms)
    )
    host.history.add(outcome=OUTCOME_REJECTED, kind=OPERATION_KIND_REBOOT)
    work = Operation(id="op", task=[Task(id="t")], old_task=[Task(id="o")], intent=Intent(executor="ssh"))
    failed = ScenarioHost(name="lab-1", outcome=OUTCOME_FAILED, operation_id="op", task=[Task(id="t")])
    failed.agreed.add(by="ann")
    planned = Scenario(id="s", kind=SCENARIO_KIND_REBOOT, by="somebody", stage=SCENARIO_STAGE_WORKING, host=[failed])
    walle.controller.records(SCENARIO)._stored["s"] = Stored(fill(planned), 1)
    walle.projects["web"].cms.add()
    fill(walle.projects["web"])
    fill(host)
    states = {"idle": Host(), "dead": Host(status=HOST_STATUS_DEAD, status_reason="reboot: CANARY")}
    states["at work"] = fill(Host(operation=work, dns_operation=work))
    for state, more in states.items():
        host.MergeFrom(more)
        shown = {}
        for who in ("operator", "reader", "agent/lab-1"):
            answers = [(request, await one.call(who, request)) for request in EVERY_READ]
            shown[who] = [str(request) for request, (_, answer) in answers if "CANARY" in json.dumps(answer)]
        assert shown["reader"] + shown["agent/lab-1"] == [], state
        assert len(shown["operator"]) > 5, "who repairs is shown it"


REBOOT = OPERATION_KIND_REBOOT


def _update_of_web(**fields: Any) -> pb.UpdateProjectRequest:
    return pb.UpdateProjectRequest(project="web", **fields)


TOO_MANY: list[tuple[str, Message]] = [
    ("owners", _update_of_web(set_owners=True, owners=[f"o{n}" for n in range(201)])),
    (
        "cms",
        _update_of_web(cms_mode=pb.CHANGE_MODE_ADD, cms=[Cms(url=f"{CMS}/{n}", version="v1.0") for n in range(20)]),
    ),
    ("limits", _update_of_web(limits={f"c{n}": Limit(pair=[PeriodCount(period_s=60, count=1)]) for n in range(101)})),
    ("scheme", _update_of_web(set_scheme=True, scheme=[Scheme(check=f"c{n}", step=[REBOOT]) for n in range(101)])),
    ("scheme", _update_of_web(set_scheme=True, scheme=[Scheme(check="c", step=[REBOOT] * 21)])),
    ("limits.c", _update_of_web(limits={"c": Limit(pair=[PeriodCount(period_s=n + 1, count=1) for n in range(21)])})),
    ("scheme", _update_of_web(set_scheme=True, scheme=[Scheme(check="\x1b]0;c", step=[REBOOT])])),
    ("scheme", _update_of_web(set_scheme=True, scheme=[Scheme(check="c" * 64, step=[REBOOT])])),
    ("owners", _update_of_web(set_owners=True, owners=["web-uploader", "o" * 1_001])),
    ("owners", _update_of_web(set_owners=True, owners=["web-uploader", "ops/ada\n"])),
]


async def test_a_project_with_too_many_entries_is_refused_by_the_field(tmp_path: Path) -> None:
    file = pretending(destinations=Destinations(cms=(CmsEndpoint(parse_url(CMS)),)))
    async with guarded(tmp_path, file) as one:
        await prepare(one)
        for field, update in TOO_MANY:
            status, answer = await one.call("web-uploader", update)
            assert (status, answer["message"].split(": ")[0]) == (400, field), answer


async def test_an_order_about_unknown_work_is_answered_as_one_about_others_work_and_not_stored(one: Guarded) -> None:
    """Each name that an uploader made up stayed in the store for an hour, and existing names had another answer."""
    for order in (
        pb.CreateProjectRequest(project=Project(id="mail")),
        pb.AddHostRequest(host="mail-1", project="mail", state=HOST_STATE_FREE),
        pb.AddScenarioRequest(scenario="work", kind=SCENARIO_KIND_REBOOT, hosts=["mail-1"], at_once=1),
    ):
        assert await one.status("admin", order) == 200
    for about in (
        lambda name: pb.EndScenarioRequest(scenario=name, reason="no"),
        lambda name: pb.SteerScenarioRequest(scenario=name, steering=pb.STEERING_PAUSE, reason="no"),
        lambda name: pb.AgreeScenarioRequest(scenario=name, project="web", reason="no"),
    ):
        before = set(one.walle.server.automaton.orders.subjects())
        answers = [json.dumps(await one.call("web-uploader", about(name))) for name in ("work", "none")]
        assert "NOT_FOUND" in answers[0]
        assert _without_ids(answers[0]) == _without_ids(answers[1].replace("none", "work"))
        assert set(one.walle.server.automaton.orders.subjects()) == before


def _without_ids(answer: str) -> str:
    told = json.loads(answer)
    reasons = [one["debug"] for one in told[1].pop("details") if "requestId" not in one["debug"]]
    return json.dumps([told, reasons])


async def test_the_open_work_of_one_author_is_limited(one: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walle.work.scenarios.MAX_OPEN", 2)
    assert await one.status("admin", pb.FreezeRequest(frozen=True, reason="so that it waits")) == 200

    async def add(who: str, name: str) -> int:
        return await one.status(
            who, pb.AddScenarioRequest(scenario=name, kind=SCENARIO_KIND_REBOOT, hosts=["lab-1"], at_once=1)
        )

    assert [await add("web-uploader", f"work-{number}") for number in range(3)] == [200, 200, 429]
    assert await add("admin", "another") == 200, "others have room of their own"
    assert await one.status("web-uploader", pb.EndScenarioRequest(scenario="work-0")) == 200
    assert await add("web-uploader", "work-3") == 200
    together = [add("admin", f"together-{number}") for number in range(6)]
    assert sorted(await asyncio.gather(*together)) == [200, 429, 429, 429, 429, 429], "admin has one already"


NAMES_NOTHING: list[tuple[str, Message]] = [
    ("project", pb.AgreeScenarioRequest(scenario="s", reason="yes")),
    ("project", pb.ReleaseTasksRequest(reason="looked")),
    ("project", pb.GetProjectRequest()),
    ("host", pb.CancelOperationRequest()),
    ("host", pb.GetHostRequest()),
    ("scenario", pb.GetScenarioRequest()),
    ("notice", pb.AcknowledgeNoticeRequest(reason="seen")),
]


async def test_a_group_id_is_shared_only_by_orders_of_one_author(one: Guarded) -> None:
    """A CMS decides a group as one: whoever used its id kept others' work waiting with an impossible task."""
    authors = {"lab-2": "lab-operator", "lab-3": "lab-operator", "prod-2": "operator"}
    for host in authors:
        assert await one.status("admin", pb.AddHostRequest(host=host, project="web", ignore_cms=True)) == 200
    in_use = lambda: not any(one.walle.of(host).HasField("operation") for host in authors)  # noqa: E731
    await one.walle.until(in_use, "they are in use")
    assert await one.status("admin", pb.FreezeRequest(frozen=True, reason="so that it waits")) == 200
    for host, who in authors.items():
        order = pb.StartOperationRequest(host=host, kind=OPERATION_KIND_REBOOT, group_id="maintenance")
        assert await one.status(who, order) == 200
    groups = [one.walle.of(host).operation.group_id for host in authors]
    assert groups[0] == groups[1] != groups[2]
    assert all(group.startswith("maintenance-") for group in groups)


async def test_an_order_that_names_nothing_says_what_it_must_name(one: Guarded) -> None:
    for what, request in NAMES_NOTHING:
        assert (await one.call("lab-operator", request))[1]["message"] == f"no {what} is named", request


LONG = "x" * 1_001
TOO_LONG: list[tuple[str, Message]] = [
    ("reason", pb.SetHostStateRequest(host="lab-1", status=HOST_STATUS_READY, reason=LONG)),
    ("reason", pb.StartOperationRequest(host="lab-1", kind=OPERATION_KIND_REBOOT, reason=LONG)),
    ("group_id", pb.StartOperationRequest(host="lab-1", kind=OPERATION_KIND_REBOOT, group_id=LONG)),
    ("reason", pb.CancelOperationRequest(host="lab-1", reason=LONG)),
    ("reason", pb.SwitchAutomationRequest(project="web", reason=LONG)),
    ("reason", _update_of_web(reason=LONG)),
    ("reason", pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_REBOOT, hosts=["lab-1"], reason=LONG)),
    ("ticket", pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_REBOOT, hosts=["lab-1"], ticket=LONG)),
    ("reason", pb.EndScenarioRequest(scenario="s", reason=LONG)),
    ("owners", _update_of_web(set_owners=True, owners=["web-uploader", LONG])),
    ("owners", _update_of_web(set_owners=True, owners=["web-uploader", "a\nb"])),
    ("reason", pb.AgreeScenarioRequest(scenario="s", project="web", reason=LONG)),
    ("reason", pb.ReleaseTasksRequest(project="web", reason=LONG)),
]


async def test_the_text_stored_for_an_order_is_limited(one: Guarded) -> None:
    """A few long reasons filled the record of a host, so that nobody could change it; many filled the store."""
    assert await one.status("admin", pb.FreezeRequest(frozen=True, reason="so that it waits")) == 200
    work = pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_REBOOT, hosts=["lab-1"])
    assert await one.status("web-uploader", work) == 200
    for field, order in TOO_LONG:
        status, answer = await one.call("web-uploader", order)
        assert (status, field in json.dumps(answer)) == (400, True), (order, answer)


UNKNOWN: Any = 99
WITH_UNKNOWN_NUMBERS: list[tuple[str, Message]] = [
    ("state", pb.SetHostStateRequest(host="lab-2", state=UNKNOWN)),
    ("kind", pb.StartOperationRequest(host="lab-2", kind=UNKNOWN)),
    ("change", pb.ChangeHostRequest(host="lab-2", change=UNKNOWN)),
    ("kind", pb.AddScenarioRequest(scenario="s", kind=UNKNOWN, hosts=["lab-2"])),
    ("steering", pb.SteerScenarioRequest(scenario="s", steering=UNKNOWN, reason="no")),
    ("cms_mode", _update_of_web(cms_mode=UNKNOWN)),
    ("scheme.step", _update_of_web(set_scheme=True, scheme=[Scheme(check="c", step=[UNKNOWN])])),
    (
        "notifications.recipient.severity",
        _update_of_web(
            set_notifications=True,
            notifications=Notifications(recipient=[Recipient(address="a@b.test", severity=UNKNOWN)]),
        ),
    ),
]


async def test_an_unknown_enum_value_is_refused_before_it_is_stored(one: Guarded) -> None:
    """As the state of a host it broke all lists of hosts; as a kind of work, all orders of its author."""
    assert await one.status("admin", pb.AddHostRequest(host="lab-2", project="web", ignore_cms=True)) == 200
    await one.walle.until(lambda: not one.walle.of("lab-2").HasField("operation"), "it is in use")
    for field, order in WITH_UNKNOWN_NUMBERS:
        status, answer = await one.call("admin", order)
        assert (status, field in json.dumps(answer)) == (400, True), (order, status, answer)
    failing_now = pb.HostChecks(host="lab-2", check=[pb.CheckReport(name="ssh", failing=True)])
    assert await one.status("admin", pb.ReportChecksRequest(hosts=[failing_now])) == 200
    await one.walle.until(lambda: bool(one.walle.of("lab-2").check), "the report is stored")
    assert await one.status("reader", pb.ListHostsRequest()) == 200
    assert (
        await one.status("admin", pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_REBOOT, hosts=["lab-2"]))
        == 200
    )


async def test_an_agent_s_request_makes_no_more_work_than_its_machine_is_worth(one: Guarded) -> None:
    """Agents stopped Wall-E for minutes: with patterns compared with each host, or alerts about others' hosts."""
    status, answer = await one.call("agent/lab-1", pb.ListHostsRequest(names=["*a*b"] * 101))
    assert (status, "101 patterns are too many" in json.dumps(answer)) == (400, True)
    starts = pb.ReportChecksRequest(hosts=[pb.HostChecks(host="lab-1", boot_id="b" * 257)])
    assert await one.status("agent/lab-1", starts) == 400, "it would be kept"
    alerts = [pb.Alert()] * (MOST_ITEMS + 1)
    status, answer = await one.call("agent/lab-1", pb.TakeAlertsRequest(alerts=alerts))
    assert (status, "20001 items are too many" in json.dumps(answer)) == (400, True)


async def test_reports_of_an_agent_cost_no_more_than_its_machine_is_worth(taking: Guarded) -> None:
    """Thousands of them came in one call: each had its line and its write, and nothing else was answered meanwhile."""
    disk = pb.HostChecks(host="lab-1", check=[pb.CheckReport(name="disk", failing=True)])
    status, answer = await taking.call("agent/lab-1", pb.ReportChecksRequest(hosts=[disk] * 2))
    assert (status, "lab-1' comes 2 times" in json.dumps(answer)) == (400, True)
    hosts = [pb.HostChecks(host=f"x{n}", check=disk.check[:] * 100) for n in range(MOST_ITEMS // 100 + 1)]
    status, answer = await taking.call("admin", pb.ReportChecksRequest(hosts=hosts))
    assert (status, "20100 checks of all hosts" in json.dumps(answer)) == (400, True)


async def test_a_time_out_of_range_is_refused_and_stops_no_other_reports(taking: Guarded) -> None:
    """Only the first report of a subject was checked before all were stored: handling the next one failed for ever."""
    endless = Timestamp(seconds=2**62)
    reports = [pb.CheckReport(name="disk", failing=True), pb.CheckReport(name="disk", starts_at=endless)]
    hosts = [pb.HostChecks(host=host, check=[one]) for host, one in zip(("lab-1", "prod-1"), reports, strict=True)]
    status, text = await taking.raw("admin", pb.ReportChecksRequest(hosts=hosts))
    assert (status, "starts_at" in text) == (400, True)
    alert = pb.Alert(status="firing", labels={"host": "lab-1", "check": "disk"}, starts_at=endless)
    status, text = await taking.raw("agent/lab-1", pb.TakeAlertsRequest(alerts=[alert]))
    assert (status, "starts_at" in text) == (200, True), "it is answered: Alertmanager would send it again"


async def test_reports_of_an_agent_leave_room_in_the_record_of_its_host(taking: Guarded) -> None:
    """They once filled the record, and no operation on the machine could be stored any more."""
    for number in range(10):
        checks = [
            pb.CheckReport(name=f"disk{one}", failing=True, fingerprint=f"{number}-{one}", text="\U0001f525" * 2000)
            for one in range(10)
        ]
        report = pb.ReportChecksRequest(hosts=[pb.HostChecks(host="lab-1", check=checks)])
        assert await taking.status("agent/lab-1", report) == 200
    newest = "9-9"

    def has_newest() -> bool:
        return any(one.fingerprint == newest for check in taking.walle.of("lab-1").check for one in check.said)

    await taking.walle.until(has_newest, "the newest is there")
    assert taking.walle.of("lab-1").ByteSize() < 140_000


def failing(*hosts: str) -> pb.ReportChecksRequest:
    one = pb.CheckReport(name="UNREACHABLE", failing=True)
    return pb.ReportChecksRequest(hosts=[pb.HostChecks(host=host, check=[one]) for host in hosts])


@pytest.fixture
async def taking(tmp_path: Path) -> AsyncIterator[Guarded]:
    """The same; agents may report UNREACHABLE and disk."""
    folder = tmp_path / "taking"
    folder.mkdir()
    async with guarded(folder, pretending(agent_checks=Patterns(["UNREACHABLE", "dis*"]))) as made:
        await prepare(made)
        yield made


async def test_agents_report_no_check_that_the_configuration_does_not_list(one: Guarded, taking: Guarded) -> None:
    assert await one.status("agent/lab-1", failing("lab-1")) == 403
    alerts = [pb.Alert(status="firing", labels={"host": "lab-1", "check": "ssh"})]
    for walle in (one, taking):
        _, answer = await walle.call("agent/lab-1", pb.TakeAlertsRequest(alerts=alerts))
        assert "agents may not report ssh: `agent_checks`" in answer["unknown"][0]
    starts = pb.ReportChecksRequest(hosts=[pb.HostChecks(host="lab-1", boot_id="b")])
    assert await one.status("agent/lab-1", starts) == 200
    assert await taking.status("agent/lab-1", failing("lab-1")) == 200
    assert await one.status("lab-operator", failing("lab-1")) == 200


async def test_a_report_that_changes_a_check_is_in_the_audit_log_and_its_source_is_shown(taking: Guarded) -> None:
    for _ in range(2):
        assert await taking.status("agent/lab-1", failing("lab-1")) == 200
        await taking.walle.until(lambda: len(taking.walle.of("lab-1").check) == 1, "it is stored")
    lines = [json.loads(line) for line in taking.files.audit.read_text().splitlines()]
    changes = [(line["identity"], line["key"], line["decision"]) for line in lines if line["outcome"] == "CHANGED"]
    assert changes == [("agent/lab-1", "lab-1", "allow")], "the second said nothing new"
    assert taking.walle.of("lab-1").check[0].source == "agent/lab-1"


async def test_a_source_clears_only_its_own_reports(taking: Guarded) -> None:
    def check() -> tuple[bool, str]:
        one = next(iter(taking.walle.of("lab-1").check), None)
        return (one.failing, one.source) if one is not None else (False, "")

    def report(failing: bool, source: str = "") -> pb.ReportChecksRequest:
        one = pb.CheckReport(name="disk", failing=failing, source=source)
        return pb.ReportChecksRequest(hosts=[pb.HostChecks(host="lab-1", check=[one])])

    alerts = [pb.Alert(status="firing", labels={"host": "lab-1", "check": "disk"}, fingerprint=f) for f in ("a", "b")]
    assert await taking.status("operator", pb.TakeAlertsRequest(alerts=alerts)) == 200
    await taking.walle.until(lambda: check() == (True, "alertmanager"), "both disks fail")
    assert await taking.status("agent/lab-1", report(failing=True)) == 200
    await taking.walle.until(lambda: check() == (True, "agent/lab-1, alertmanager"), "two sources say so")
    for who, source in (("agent/lab-1", "alertmanager"), ("agent/lab-1", ""), ("lab-operator", "")):
        assert await taking.status(who, report(failing=False, source=source)) == 200
    await taking.walle.until(lambda: check() == (True, "alertmanager"), "only the agent's is cleared")
    resolved = pb.Alert(status="resolved", labels={"host": "lab-1", "check": "disk"}, fingerprint="a")
    assert await taking.status("agent/lab-1", pb.TakeAlertsRequest(alerts=[resolved])) == 200
    assert await taking.status("operator", pb.TakeAlertsRequest(alerts=[resolved])) == 200
    of = taking.walle.of
    await taking.walle.until(lambda: sum(one.failing for one in of("lab-1").check[0].said) == 1, "one is left")
    assert check() == (True, "alertmanager"), "of two disks, one fails on"
    resolved.fingerprint = "b"
    assert await taking.status("operator", pb.TakeAlertsRequest(alerts=[resolved])) == 200
    await taking.walle.until(lambda: not check()[0], "both are resolved")


async def test_an_operator_clears_the_report_of_a_source_that_no_longer_reports(one: Guarded) -> None:
    gone = [pb.Alert(status="firing", labels={"host": "lab-1", "check": "UNREACHABLE"})]
    assert await one.status("operator", pb.TakeAlertsRequest(alerts=gone)) == 200
    await one.walle.until(lambda: len(one.walle.of("lab-1").check) == 1, "it fails")
    fine = failing("lab-1")
    fine.hosts[0].check[0].failing, fine.hosts[0].check[0].source = False, "alertmanager"
    assert await one.status("lab-operator", fine) == 200
    await one.walle.until(lambda: not one.walle.of("lab-1").check[0].failing, "it is fine")


async def test_a_monitor_cannot_report_for_another_source(one: Guarded) -> None:
    assert await one.status("lab-operator", failing("lab-1")) == 200
    await one.walle.until(lambda: len(one.walle.of("lab-1").check) == 1, "it fails")
    fine = failing("lab-1")
    fine.hosts[0].check[0].failing, fine.hosts[0].check[0].source = False, "lab-operator"
    assert await one.status("monitor", fine) == 200
    assert await one.status("monitor", failing("lab-1")) == 200
    said = one.walle.of
    await one.walle.until(lambda: len(said("lab-1").check[0].said) == 2, "the monitor's own is stored")
    assert [(source.name, source.failing) for source in said("lab-1").check[0].said] == [
        ("lab-operator", True),
        ("monitor", True),
    ]
    alerts = [pb.Alert(status="firing", labels={"host": "lab-1", "check": "disk"})]
    assert await one.status("monitor", pb.TakeAlertsRequest(alerts=alerts)) == 200
    await one.walle.until(lambda: len(said("lab-1").check) == 2, "alerts are Alertmanager's, whoever brings them")
    assert {check.name: check.source for check in said("lab-1").check}["disk"] == "alertmanager"


async def test_a_caller_that_does_not_see_a_scenario_is_told_that_it_does_not_exist(one: Guarded) -> None:
    assert await one.status("admin", pb.CreateProjectRequest(project=Project(id="mail"))) == 200
    assert await one.status("admin", pb.AddHostRequest(host="mail-1", project="mail", state=HOST_STATE_FREE)) == 200
    mail = pb.AddScenarioRequest(scenario="mail", kind=SCENARIO_KIND_REBOOT, hosts=["mail-1"])
    assert await one.status("admin", mail) == 200

    async def answer(request: Message, scenario: str) -> tuple[int, str]:
        request.scenario = scenario  # type: ignore[attr-defined]
        status, answer = await one.call("web-uploader", request)
        return status, answer["message"].replace(scenario, "-")

    for order in (
        pb.EndScenarioRequest(reason="no"),
        pb.EndScenarioRequest(reason="yes", done=True),
        pb.AgreeScenarioRequest(project="web", reason="yes"),
        pb.AgreeScenarioRequest(project="web", reason="no", refused=True),
    ):
        assert await answer(order, "mail") == await answer(order, "nowhere"), order


async def test_the_reason_why_the_global_fuse_tripped_is_shown_to_readers_of_everything(one: Guarded) -> None:
    assert await one.status("operator", pb.SwitchAutomationRequest(reason="mail-7 burns")) == 200
    _, seen = await one.call("operator", pb.GetSettingsRequest())
    assert seen["fuse"]["switching"]
    for who in ("lab-operator", "web-uploader", "agent/lab-1"):
        _, seen = await one.call(who, pb.GetSettingsRequest())
        assert seen["fuse"]["healing"]["off"], "everybody is told that nothing is repaired"
        assert "mail-7" not in json.dumps(seen), who


async def test_an_agent_reports_checks_of_its_own_node_only(taking: Guarded) -> None:
    one = taking
    assert await one.status("agent/lab-1", failing("lab-1")) == 200
    assert await one.status("agent/lab-1", failing("prod-1")) == 403
    assert await one.status("agent/lab-1", failing("lab-1", "prod-1")) == 403
    alerts = [pb.Alert(status="firing", labels={"host": host, "check": "disk"}) for host in ("lab-1", "prod-1")]
    status, answer = await one.call("agent/lab-1", pb.TakeAlertsRequest(alerts=alerts))
    assert (status, answer["unknown"]) == (200, ["host prod-1 is outside the granted scope"])
    await one.walle.until(lambda: len(one.walle.of("lab-1").check) == 2, "its own are stored")
    assert not one.walle.of("prod-1").check
    lines = [json.loads(line) for line in one.files.audit.read_text().splitlines()]
    denied = [(line["identity"], line["key"]) for line in lines if line["decision"] == "deny"]
    assert denied == [("agent/lab-1", "prod-1")] * 2, "of each call the first; the rest is a sum at the end of a minute"


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
async def test_orders_are_refused_while_they_cannot_be_recorded_except_those_that_only_stop(tmp_path: Path) -> None:
    async with guarded(tmp_path, pretending(agent_checks=Patterns(["*"])), FULL) as full:
        for order in (*on_host("lab-1"), *IN_PROJECT, *BEGINS):
            if isinstance(order, pb.CancelOperationRequest | pb.ReportChecksRequest) or order == IN_PROJECT[1]:
                continue
            status, answer = await full.call("admin", order)
            assert (status, "audit log" in answer["message"]) == (503, True), order
        assert not full.walle.server.automaton.projects
        assert await full.status("agent/lab-1", failing("lab-1")) == 200
        for order in (
            *STOPS,
            IN_PROJECT[1],
            pb.CancelOperationRequest(host="lab-1"),
            pb.EndScenarioRequest(scenario="s"),
        ):
            status, answer = await full.call("operator", order)
            assert status in (200, 404), (order, answer)
        assert full.walle.server.controller.frozen is not None
