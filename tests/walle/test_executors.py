"""Executors against real counterparts: a Redfish emulator, BIND, programs; and others' services."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest

from tests.support.walle.anywhere import ANYWHERE
from tests.support.walle.counterparts import (
    KEY,
    NAMED,
    NO_NAMED,
    ZONE,
    NameServer,
    name_server,
    power_of,
    redfish_emulator,
)
from tests.support.walle.hosts import a_host
from walle.executors.command import Command, CommandConfig
from walle.executors.dns import Dns, DnsConfig
from walle.executors.over_http import Redfish, RedfishConfig, WebhookExecutor
from walle.executors.port import ExecutorFailure, PollResult, WorkProgress
from walle.outgoing.calls import OutgoingCalls
from walle.outgoing.destinations import AllowedEndpoint, Controllers, Destinations, parse_url
from wallepb.v1.host_pb2 import (
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_POWER_OFF,
    OPERATION_KIND_REBOOT,
    Host,
    Intent,
    Operation,
    OperationKind,
)

BMC = "http://10.7.0.1"


def in_work(kind: OperationKind = OPERATION_KIND_REBOOT, name: str = "h1", before: str = "", handle: str = "") -> Host:
    host = a_host(name, "UNREACHABLE")
    host.operation.CopyFrom(Operation(id="op1", kind=kind, check="UNREACHABLE"))
    host.operation.intent.CopyFrom(Intent(before=before, handle=handle))
    return host


@pytest.fixture
async def calls() -> AsyncIterator[OutgoingCalls]:
    made = OutgoingCalls()
    yield made
    await made.aclose()


def redfish(url: str, system: str, calls: OutgoingCalls) -> Redfish:
    return Redfish("bmc", RedfishConfig(url=url, system=system), ANYWHERE, calls)


# --- Redfish --------------------------------------------------------------------------------------------------------


@pytest.mark.long
async def test_redfish_restarts_a_machine_and_recognises_it_by_its_boot_id(
    calls: OutgoingCalls, tmp_path: Path
) -> None:
    async with redfish_emulator(tmp_path, "machine-1") as url:
        executor, host = redfish(url, "{host}", calls), in_work(name="machine-1")
        host.boot_id = "before"
        host.operation.intent.before = await executor.progress_marker(host)
        host.operation.intent.handle = await executor.begin(host)
        assert host.operation.intent.handle == "ForceRestart"
        assert (await executor.poll(host, 1)).progress is WorkProgress.RUNNING  # off for some seconds
        while await power_of(url, "machine-1") != "On":
            await asyncio.sleep(0.2)
        assert (await executor.poll(host, 20)).progress is WorkProgress.RUNNING  # on, its agent has not reported yet
        host.boot_id = "after"
        assert (await executor.poll(host, 30)).progress is WorkProgress.DONE


@pytest.mark.long  # the emulator takes up to eleven seconds
async def test_redfish_powers_off(calls: OutgoingCalls, tmp_path: Path) -> None:
    async with redfish_emulator(tmp_path, "machine-1") as url:
        executor = redfish(url, "", calls)  # the only system needs no name
        host = in_work(OPERATION_KIND_POWER_OFF)
        host.operation.intent.handle = await executor.begin(host)
        while await power_of(url, "machine-1") != "Off":
            await asyncio.sleep(0.2)
        assert (await executor.poll(host, 20)).progress is WorkProgress.DONE


@pytest.mark.long
async def test_redfish_failures_say_what_is_wrong(calls: OutgoingCalls, tmp_path: Path) -> None:
    async with redfish_emulator(tmp_path, "a", "b") as url:
        with pytest.raises(ExecutorFailure, match="2 systems: configure `system`"):
            await redfish(url, "", calls).progress_marker(in_work())
        with pytest.raises(ExecutorFailure, match="HTTP 404"):
            await redfish(url, "{host}", calls).progress_marker(in_work(name="c"))
    with pytest.raises(ExecutorFailure, match="ConnectError"):
        await redfish(url, "a", calls).progress_marker(in_work())


def machine(power: str = "On", **more: object) -> OutgoingCalls:
    """A controller that shows this; resets are taken."""

    def answer(request: httpx.Request) -> httpx.Response:
        action = {"target": "/reset", "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart"]}
        shown = {"PowerState": power, "Actions": {"#ComputerSystem.Reset": action}, **more}
        return httpx.Response(200, json=shown) if request.method == "GET" else httpx.Response(204)

    return OutgoingCalls(httpx.MockTransport(answer))


@pytest.mark.parametrize(
    ("before", "boot_id", "handle", "age_s", "progress"),
    [
        ("boot a", "b", "", 5, WorkProgress.DONE),  # killed after the call: it took place
        ("boot a", "a", "", 5, WorkProgress.RUNNING),  # killed around the call: it may be starting
        ("boot a", "a", "", 1000, WorkProgress.NOT_BEGUN),  # it would have started by now
        ("boot a", "a", "ForceRestart", 1000, WorkProgress.RUNNING),  # it was sent: never a second one
        ("", "", "ForceRestart", 5, WorkProgress.DONE),  # it was taken, and nothing shows more
        ("", "", "", 5, WorkProgress.UNKNOWN),  # killed around the call, and nothing shows restarts
    ],
)
async def test_a_reset_is_not_sent_again_unless_it_surely_did_not_take_place(
    before: str, boot_id: str, handle: str, age_s: float, progress: WorkProgress
) -> None:
    host = in_work(before=before, handle=handle)
    host.boot_id = boot_id
    async with aclosing(machine()) as calls:
        executor = redfish(BMC, "1", calls)
        assert (await executor.poll(host, age_s)).progress is progress


async def test_the_time_of_the_last_reset_is_believed_before_boot_ids() -> None:
    async with aclosing(machine(LastResetTime="2026-11-22T10:00:00Z")) as calls:
        executor = redfish(BMC, "1", calls)
        assert await executor.progress_marker(in_work()) == "reset 2026-11-22T10:00:00Z"
        assert (await executor.poll(in_work(before="reset earlier"), 1)).progress is WorkProgress.DONE


async def test_a_machine_that_is_off_is_switched_on() -> None:
    async with aclosing(machine(power="Off")) as calls:
        assert await redfish(BMC, "1", calls).begin(in_work()) == "On"


# --- DNS ------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def bind(tmp_path: Path) -> AsyncIterator[NameServer]:
    if NAMED is None:
        pytest.skip(NO_NAMED)
    async with name_server(tmp_path) as server:
        yield server


def dns_of(server: NameServer, key: str = KEY) -> Dns:
    return Dns("dns", DnsConfig("127.0.0.1", ZONE, server.port, key_name="walle", key=key))


def named_host(*addresses: str, name: str = f"h1.{ZONE}") -> Host:
    host = in_work(OPERATION_KIND_DNS_FIX, name)
    host.address.extend(addresses)
    return host


async def test_a_name_server_that_refuses_the_query_is_not_taken_for_one_without_records(bind: NameServer) -> None:
    executor = Dns("dns", DnsConfig("127.0.0.1", "other.example", bind.port))
    with pytest.raises(ExecutorFailure, match=r"^127\.0\.0\.1 refused the query: REFUSED$"):
        await executor.poll(named_host("10.0.0.1", name="h1.other.example"), 0)


async def test_the_records_of_a_host_become_the_addresses_that_walle_knows(bind: NameServer) -> None:
    executor, host = dns_of(bind), named_host("10.0.0.1", "2001:db8::1")
    assert (await executor.poll(host, 0)).progress is WorkProgress.NOT_BEGUN  # 10.0.0.99, and no AAAA
    await executor.begin(host)
    assert (await executor.poll(host, 0)).progress is WorkProgress.DONE
    await executor.begin(host)  # sent again, nothing changes
    assert (await executor.poll(host, 0)).progress is WorkProgress.DONE


async def test_an_address_that_a_host_no_longer_has_is_removed_from_dns(bind: NameServer) -> None:
    executor = dns_of(bind)
    await executor.begin(named_host("10.0.0.1", "2001:db8::1"))
    await executor.begin(named_host("10.0.0.1"))
    assert (await executor.poll(named_host("10.0.0.1"), 0)).progress is WorkProgress.DONE


async def test_an_update_that_is_refused_is_a_failure(bind: NameServer) -> None:
    with pytest.raises(ExecutorFailure, match=r"NOTAUTH|BadSignature|REFUSED|PeerBad"):
        await dns_of(bind, key="b3RoZXI=").begin(named_host("10.0.0.1"))


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (named_host(), "has no addresses"),
        (named_host("10.0.0.1", name="h1.elsewhere.example"), "is not in zone"),
        (named_host("not-an-address"), "not-an-address"),
    ],
)
async def test_a_host_that_dns_cannot_fix_is_told_with_the_reason(host: Host, why: str) -> None:
    with pytest.raises(ExecutorFailure, match=why):
        await Dns("dns", DnsConfig("127.0.0.1", ZONE, 1)).begin(host)


async def test_a_name_server_that_is_away_is_a_failure() -> None:
    with pytest.raises(ExecutorFailure, match="ConnectionRefusedError"):
        await Dns("dns", DnsConfig("127.0.0.1", ZONE, 1)).poll(named_host("10.0.0.1"), 0)


# --- programs -------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the programs' files: their operations have the same id here."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return tmp_path / "state" / "programs"


async def run(executor: Command, host: Host) -> tuple[WorkProgress, str]:
    host.operation.intent.handle = await executor.begin(host)
    while True:
        seen = await executor.poll(host, 0)
        if seen.progress is not WorkProgress.RUNNING:
            return seen.progress, seen.output
        await asyncio.sleep(0.05)


async def test_a_program_gets_the_host_as_arguments_and_its_output_is_kept() -> None:
    script = "import os, sys; print('fixing', *sys.argv[1:], os.environ['WALLE_OPERATION_ID'])"
    config = CommandConfig((sys.executable, "-c", script, "{operation}", "{host}"))
    assert await run(Command("script", config), in_work()) == (WorkProgress.DONE, "exit code 0\nfixing reboot h1 op1\n")


async def test_a_program_does_not_get_the_environment_of_walle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of Wall-E's is in it where an operator sets WALLE_TOKEN."""
    monkeypatch.setenv("WALLE_TOKEN", "secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    script = "import os; print(*sorted(set(os.environ) - {'LC_CTYPE'}))"
    progress, output = await run(Command("script", CommandConfig((sys.executable, "-c", script))), in_work())
    assert progress is WorkProgress.DONE
    allowed = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "WALLE_OPERATION_ID", "WALLE_HOST"}
    assert {"PATH", "WALLE_HOST"} <= set(output.split()[3:]) <= allowed


@pytest.mark.parametrize("name", ["h1;touch /tmp/x", "-oProxyCommand=touch /tmp/x", "../h1", "h1\nh2", ""])
async def test_a_program_gets_only_values_that_match_their_grammar(name: str) -> None:
    executor = Command("script", CommandConfig(("true", "{host}")))
    with pytest.raises(ExecutorFailure, match="host is"):
        await executor.begin(in_work(name=name))


@pytest.mark.parametrize(
    ("bmc", "why"),
    [
        ("-oProxyCommand=touch /tmp/x", "is not a valid address"),
        ("10.7.0.1/x", "is not a valid address"),
        ("ada@10.7.0.1", "is not a valid address"),
        ("", "has no bmc"),
        ("10.8.0.1", "no entry of `redfish`"),
        ("10.7.evil.example", "no entry of `redfish`"),
    ],
)
async def test_a_program_gets_only_management_controllers_that_the_configuration_lists(bmc: str, why: str) -> None:
    listed = Destinations((Controllers(ip_network("10.7.0.0/16")),))
    executor, host = Command("script", CommandConfig(("echo", "{bmc}")), listed), in_work()
    host.bmc = "10.7.0.1"
    assert await run(executor, host) == (WorkProgress.DONE, "exit code 0\n10.7.0.1\n")
    host.bmc = bmc
    with pytest.raises(ExecutorFailure, match=why):
        await executor.begin(host)


async def test_another_exit_code_is_a_failure_with_its_output() -> None:
    config = CommandConfig((sys.executable, "-c", "print('no way'); raise SystemExit(3)"))
    assert await run(Command("script", config), in_work()) == (WorkProgress.FAILED, "exit code 3\nno way\n")


async def test_a_program_that_does_not_end_in_time_is_ended() -> None:
    config = CommandConfig((sys.executable, "-c", "import time; time.sleep(60)"), timeout_s=0.3)
    progress, output = await run(Command("script", config), in_work())
    assert progress is WorkProgress.FAILED
    assert "not finished within 0.3 s" in output


async def test_the_children_of_a_program_end_with_it(tmp_path: Path) -> None:
    """`sh -c "sleep & wait"` at its timeout: the sleeper went on for ever."""
    at = tmp_path / "child"
    for ending, timeout_s in (("wait", 0.5), ("exit 0", 20.0)):
        script = f"sleep 600 >/dev/null 2>&1 & echo $! > {at}; {ending}"
        at.write_text("")
        while not at.read_text():  # again where its time was up before the sleeper was there
            await run(Command("script", CommandConfig(("sh", "-c", script), timeout_s=timeout_s)), in_work())
        child = int(at.read_text())
        while is_running(child):
            await asyncio.sleep(0.02)


_ESCAPE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if sys.argv[1] == "quietly":
            os.closerange(0, 3)
        with open(sys.argv[2], "w") as file:
            file.write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[2]) or not open(sys.argv[2]).read():
    time.sleep(0.01)
time.sleep(600 if sys.argv[3] == "hang" else 0)
"""


@pytest.mark.long
@pytest.mark.parametrize(("manner", "ending"), [("quietly", "end"), ("holding its output", "end"), ("quietly", "hang")])
async def test_a_child_with_a_session_of_its_own_ends_with_the_program(
    manner: str, ending: str, tmp_path: Path
) -> None:
    """Such a child left the process group, its parent ended, and it ran on after the operation was over."""
    at = tmp_path / "daemon"
    timeout_s = 10.0 if ending == "hang" else 60.0  # by then the child must have written who it is
    config = CommandConfig((sys.executable, "-c", _ESCAPE, manner, str(at), ending), timeout_s=timeout_s)
    progress, _ = await run(Command("script", config), in_work())
    assert progress is (WorkProgress.FAILED if ending == "hang" else WorkProgress.DONE)
    assert not is_running(int(at.read_text()))


async def test_a_signal_that_ended_the_program_is_its_exit_code() -> None:
    config = CommandConfig((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"))
    assert await run(Command("script", config), in_work()) == (WorkProgress.FAILED, "exit code 137\n")


def is_running(pid: int) -> bool:
    """A process that ended, and was not waited for yet, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_program_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(ExecutorFailure, match="No such file"):
        await Command("script", CommandConfig(("/no/such/program",))).begin(in_work())


@pytest.mark.parametrize(("repeatable", "progress"), [(True, WorkProgress.NOT_BEGUN), (False, WorkProgress.UNKNOWN)])
async def test_a_program_without_a_known_outcome_is_repeated_only_if_it_is_repeatable(
    repeatable: bool, progress: WorkProgress
) -> None:
    config = CommandConfig(("true",), repeatable=repeatable)
    assert (await Command("script", config).poll(in_work(handle="another-machine"), 0)).progress is progress


_STARTS_ONE_AND_DIES = """
import asyncio, os, signal, sys
from tests.walle.test_executors import in_work
from walle.executors.command import Command, CommandConfig

async def main():
    await Command("script", CommandConfig(tuple(sys.argv[2:]), timeout_s=float(sys.argv[1]))).begin(in_work())
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def begun_by_one_that_was_killed(*argv: str, timeout_s: float = 60) -> None:
    """Before the handle was stored."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _STARTS_ONE_AND_DIES, str(timeout_s), *argv)
    assert await process.wait() == -signal.SIGKILL


async def poll_until_ended(executor: Command, host: Host) -> PollResult:
    async with asyncio.timeout(20):
        while (seen := await executor.poll(host, 0)).progress is WorkProgress.RUNNING:
            await asyncio.sleep(0.05)
    return seen


@pytest.mark.long
@pytest.mark.parametrize(("code", "progress"), [(0, WorkProgress.DONE), (3, WorkProgress.FAILED)])
async def test_a_program_goes_on_when_walle_is_killed_and_is_found_again(
    code: int, progress: WorkProgress, tmp_path: Path
) -> None:
    """What it printed next killed it, and a second one began beside the first."""
    go = tmp_path / "go"
    script = f"echo before; until [ -e {go} ]; do sleep 0.05; done; echo after; exit {code}"
    await begun_by_one_that_was_killed("sh", "-c", script)
    executor = Command("script", CommandConfig(("true",), repeatable=True))
    assert (await executor.poll(in_work(), 0)).progress is WorkProgress.RUNNING, "though it may be repeated"
    with pytest.raises(ExecutorFailure, match="still runs"):
        await executor.begin(in_work())
    go.touch()
    assert await poll_until_ended(executor, in_work()) == PollResult(progress, f"exit code {code}\nbefore\nafter\n")


@pytest.mark.long
async def test_a_program_that_hangs_is_ended_in_time_though_walle_was_killed(tmp_path: Path) -> None:
    at = tmp_path / "child"
    await begun_by_one_that_was_killed("sh", "-c", f"sleep 600 & echo $! > {at}; wait", timeout_s=2)
    seen = await poll_until_ended(Command("script", CommandConfig(("true",), timeout_s=2)), in_work())
    assert (seen.progress, seen.output) == (WorkProgress.FAILED, "not finished within 2 s\n")
    assert not is_running(int(at.read_text()))


@pytest.mark.long
async def test_a_program_that_was_stopped_has_not_ended(runs: Path) -> None:
    """It stopped with its machine, or when Wall-E's unit was restarted: its file says nothing, and is not locked."""
    executor = Command("script", CommandConfig(("sleep", "60"), repeatable=True))
    await executor.begin(in_work())
    assert (await executor.poll(in_work(), 0)).progress is WorkProgress.RUNNING
    await executor.close()
    assert (runs / "op1").read_text() == ""
    assert (await executor.poll(in_work(), 0)).progress is WorkProgress.NOT_BEGUN


async def test_a_folder_of_programs_that_others_can_write_to_is_not_used(runs: Path) -> None:
    runs.mkdir(parents=True)
    runs.chmod(0o777)
    with pytest.raises(ExecutorFailure, match="user alone"):
        await Command("script", CommandConfig(("true",))).begin(in_work())


async def test_files_left_by_old_runs_are_removed(runs: Path) -> None:
    runs.mkdir(parents=True, mode=0o700)
    for name, age_s in (("old", 3 * 86_400), ("new", 60)):
        (runs / name).touch()
        os.utime(runs / name, (time.time() - age_s,) * 2)
    await run(Command("script", CommandConfig(("true",))), in_work())
    assert sorted(file.name for file in runs.iterdir()) == ["new", "op1"]


@pytest.mark.long
def test_grpcs_handlers_for_fork_are_off_where_programs_are_run() -> None:
    """With them a child crashed now and then before its program began, and a repair that never ran had failed."""
    told = [sys.executable, "-c", "import walle.serve, os; print(os.environ['GRPC_ENABLE_FORK_SUPPORT'])"]
    unset = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}
    assert subprocess.check_output(told, text=True, env=unset).strip() == "0"


async def test_programs_end_with_walle() -> None:
    executor = Command("script", CommandConfig((sys.executable, "-c", "import time; time.sleep(60)")))
    await executor.begin(in_work())
    await asyncio.wait_for(executor.close(), 10)


# --- others' services -----------------------------------------------------------------------------------------------


async def test_a_service_is_asked_by_the_id_of_the_operation() -> None:
    works: dict[str, str] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            works.setdefault(json.loads(request.content)["id"], "running")
            return httpx.Response(201)
        state = works.get(request.url.path.rpartition("/")[2])
        return httpx.Response(200, json={"state": state, "output": "log"}) if state else httpx.Response(404)

    async with aclosing(OutgoingCalls(httpx.MockTransport(answer))) as calls:
        executor = WebhookExecutor("deploy", AllowedEndpoint(parse_url("http://deploy/work"), "token"), calls)
        assert (await executor.poll(in_work(), 0)).progress is WorkProgress.NOT_BEGUN
        await executor.begin(in_work())
        assert (await executor.poll(in_work(), 0)).progress is WorkProgress.RUNNING
        works["op1"] = "done"
        assert (await executor.poll(in_work(), 0)).progress is WorkProgress.DONE
        works["op1"] = "nonsense"
        with pytest.raises(ExecutorFailure, match="no state"):
            await executor.poll(in_work(), 0)


@pytest.mark.parametrize(
    ("bmc", "sent"), [("10.7.0.1", "10.7.0.1"), ("10.8.0.1", ""), ("-oProxyCommand=touch /tmp/x", ""), ("", "")]
)
async def test_a_service_is_given_only_management_controllers_that_the_configuration_lists(bmc: str, sent: str) -> None:
    """The service calls them with an account of its own."""
    got: list[dict[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(json.loads(request.content))
        return httpx.Response(201)

    listed, host = Destinations((Controllers(ip_network("10.7.0.0/16")),)), in_work()
    host.bmc = bmc
    async with aclosing(OutgoingCalls(httpx.MockTransport(answer))) as calls:
        await WebhookExecutor("deploy", AllowedEndpoint(parse_url("http://deploy/work")), calls, listed).begin(host)
    assert got[0]["bmc"] == sent


async def test_a_service_gets_only_values_that_match_their_grammar() -> None:
    async with aclosing(OutgoingCalls(httpx.MockTransport(lambda _: httpx.Response(201)))) as calls:
        with pytest.raises(ExecutorFailure, match="host is"):
            await WebhookExecutor("deploy", AllowedEndpoint(parse_url("http://deploy/work")), calls).begin(
                in_work(name="../h1")
            )
