"""hqctl as a process of its own against real sockets: what scripts and people get."""

from __future__ import annotations

import asyncio
import json
import sys

import grpc
import pytest

from hqctl.main import MEANINGS
from tests.clients.deeds import cut, refuse
from tests.clients.fake_hq import FakeReplica, instance
from tests.clients.process import environment, hqctl

Code = grpc.StatusCode


@pytest.fixture
def replica(replicas: list[FakeReplica]) -> FakeReplica:
    return replicas[0]


async def test_find_in_a_pipe_prints_plain_columns_of_all_pages(replica: FakeReplica) -> None:
    for n in range(3):
        replica.stored.put(instance(f"web-{n}"))
    done = await hqctl(replica.address, "find", "--service", "web")
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["INSTANCE", "SERVICE", "NODE", "READY", "REVISION", "HEARTBEAT"]
    assert [line[0] for line in lines[1:]] == ["web-0", "web-1", "web-2"]
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert list(replica.requests["FindInstances"][0].filter.service_id) == ["web"]


async def test_the_filter_is_made_of_all_options(replica: FakeReplica) -> None:
    options = ["--node", "n1", "--node", "n2", "-l", "engine=php", "--not-ready", "--unallocated", "-o", "name"]
    done = await hqctl(replica.address, "list", "web", *options)
    asked = replica.requests["FindInstances"][0].filter
    assert (list(asked.service_id), list(asked.node_name), dict(asked.labels)) == (
        ["web"],
        ["n1", "n2"],
        {"engine": "php"},
    )
    assert (asked.readiness, asked.allocated) == (2, 2)
    assert "No instance matches" in done.err


async def test_yaml_printed_by_get_can_be_edited_and_applied(replica: FakeReplica) -> None:
    stored = replica.stored.put(instance("web-1"))
    shown = await hqctl(replica.address, "get", "web-1", "-o", "yaml")
    edited = shown.out.replace("node-1", "node-2")
    done = await hqctl(replica.address, "apply", "-f", "-", stdin=edited)
    assert done.code == 0, done.err
    assert done.out.startswith("web-1 updated")
    sent = replica.requests["ApplyInstances"][0].instance[0]
    assert sent.spec.node_name == "node-2"
    assert (sent.meta.version, sent.meta.uid, sent.meta.cluster) == (stored.meta.version, 0, "")


async def test_get_prints_one_instance_as_one_json_object(replica: FakeReplica) -> None:
    replica.stored.put(instance("web-1"))
    done = await hqctl(replica.address, "get", "web-1", "-o", "json")
    assert json.loads(done.out)["meta"]["id"] == "web-1"


async def test_find_prints_one_json_object_with_items_and_sources(replica: FakeReplica) -> None:
    done = await hqctl(replica.address, "find", "-o", "json")
    answer = json.loads(done.out)
    assert (answer["kind"], answer["items"]) == ("List", [])
    assert answer["sources"][0]["cluster"] == "test"


async def test_what_is_not_there_is_told_and_the_rest_is_shown(replica: FakeReplica) -> None:
    replica.stored.put(instance("web-1"))
    done = await hqctl(replica.address, "get", "web-1", "web-9", "-o", "name")
    assert (done.code, done.out) == (3, "web-1\n")
    assert done.err.count("\n") == 1
    assert "web-9" in done.err


async def test_each_item_of_apply_has_its_own_result(replica: FakeReplica) -> None:
    text = "meta: {id: good}\n---\nmeta: {id: 'bad id'}\n"
    done = await hqctl(replica.address, "apply", "-f", "-", stdin=text)
    assert done.code == 1
    assert done.out.startswith("good created")
    assert done.err == "hqctl: stdin, document 2: bad id: meta.id: malformed id.\n"


async def test_a_faulty_document_sends_nothing(replica: FakeReplica) -> None:
    done = await hqctl(replica.address, "apply", "-f", "-", stdin="meta: {id: a}\n---\nmeta: {id: 1}\n")
    assert done.code == 1
    assert replica.calls["ApplyInstances"] == 0


async def test_a_port_given_twice_on_a_node_is_warned_of(replica: FakeReplica) -> None:
    other = instance("web-1")
    other.spec.allocation.port.add(name="http", number=8080)
    replica.stored.put(other)
    text = "{meta: {id: web-2}, spec: {nodeName: node-1, allocation: {port: [{name: http, number: 8080}]}}}"
    done = await hqctl(replica.address, "apply", "-f", "-", stdin=text)
    assert done.code == 0
    assert "port 8080" in done.err
    assert "web-1, web-2" in done.err


async def test_a_report_by_hand_looks_up_the_node_and_begins_an_incarnation(replica: FakeReplica) -> None:
    stored = replica.stored.put(instance("web-1", node="node-7"))
    done = await hqctl(replica.address, "report", "web-1", "v1", "--not-ready", "--reason", "Broken")
    assert done.code == 0, done.err
    (sent,) = replica.requests["ReportStatus"]
    assert (sent.node, sent.uid, sent.revision.incarnation) == ("node-7", 5, 77)
    assert sent.revision.ready.reason == "Broken"
    assert (sent.revision.ready.status, sent.revision.installed.status) == (2, 1)
    assert (sent.revision.spec_version, sent.revision.sequence) == (stored.meta.version, 1)


@pytest.mark.long
async def test_reporting_goes_on_until_hq_says_stop(replica: FakeReplica) -> None:
    replica.stored.put(instance("web-1"))
    stop = refuse(Code.FAILED_PRECONDITION, "FENCED", "another reporter took over")
    busy = refuse(Code.RESOURCE_EXHAUSTED, "OVERLOADED", retry_delay_s=0.1)
    replica.order("ReportStatus", _fine, busy, _fine, stop)
    done = await hqctl(replica.address, "report", "web-1", "v1", "--ready", "--every", "1s")
    assert done.code == 1
    assert "another reporter took over" in done.err
    assert [r.revision.sequence for r in replica.requests["ReportStatus"]] == [1, 2, 2, 3]


async def test_a_conflict_has_a_code_of_its_own(replica: FakeReplica) -> None:
    replica.stored.put(instance("web-1"))
    done = await hqctl(replica.address, "delete", "web-1", "--version", "3")
    assert (done.code, done.out) == (4, "")


async def test_a_delete_whose_outcome_is_unknown_says_so(replica: FakeReplica) -> None:
    replica.stored.put(instance("web-1"))
    replica.order("DeleteInstance", cut())
    done = await hqctl(replica.address, "delete", "web-1")
    assert done.code == 6
    assert "may or may not be stored" in done.err


async def test_an_unreachable_server_is_told_in_one_line_and_soon(replica: FakeReplica) -> None:
    await replica.stop()
    done = await hqctl(replica.address, "find")
    assert done.code == 5
    assert done.err.count("\n") == 1
    assert replica.address in done.err
    assert "HQ_SERVER" in done.err


async def test_a_second_server_is_asked_when_the_first_is_gone(replicas: list[FakeReplica]) -> None:
    await replicas[0].stop()
    done = await hqctl(",".join(r.address for r in replicas), "count", "--by", "service")
    assert done.out.splitlines()[1].split() == ["web", "3", "2", "1", "0"]


async def test_the_guard_is_shown(replica: FakeReplica) -> None:
    replica.stored.guard.holding = True
    done = await hqctl(replica.address, "guard", "status")
    assert done.out.startswith("Holding expiries")


async def test_a_mistake_on_the_command_line_needs_no_server(replica: FakeReplica) -> None:
    assert (await hqctl(replica.address, "find", "-l", "non sense")).code == 2
    assert (await hqctl(replica.address, "bogus")).code == 2
    assert not replica.calls


async def test_help_tells_every_exit_code_without_importing_grpc(replica: FakeReplica) -> None:
    done = await hqctl(replica.address, "--help")
    assert all(meaning in done.out for meaning in MEANINGS.values())
    code = "import sys, hqctl.main as m; m.cli(['--help'], standalone_mode=False); sys.exit('grpc' in sys.modules)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env=environment(), stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0


async def _fine(context: object) -> None:
    """Take it."""
