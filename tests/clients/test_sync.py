"""The synchronous client: the asyncio one's calls, from threads, after forks, and at the end of the interpreter."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hqclient
from hqclient import sync
from hqclient.admin import AdminCalls
from hqclient.client import ClientSettings
from hqclient.errors import HqApiError
from hqclient.retry import RetrySettings
from hqclient.sync.admin import SyncAdminCalls
from hqclient.sync.background import BACKGROUND
from tests.clients.fake_hq import FakeReplica, instance
from tests.clients.telling import History, TellingReplica
from tests.support.sample_instances import eventually

_SETTLES_S = 60.0


def public_names(owner: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(owner) if not name.startswith("_")}


def signature_of(owner: type, name: str) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults of the arguments; `self` and what it returns aside."""
    found = inspect.signature(getattr(owner, name))
    return [(p.name, p.kind, p.default) for p in found.parameters.values() if p.name != "self"]


@pytest.mark.parametrize(
    ("theirs", "ours", "left_out"),
    [
        (hqclient.Client, sync.Client, set()),
        (hqclient.Discovery, sync.Discovery, {"instances", "open_feed", "release_feed"}),
        (hqclient.Service, sync.SyncService, {"step"}),
        (hqclient.Services, sync.SyncServices, set()),
        (AdminCalls, SyncAdminCalls, {"call"}),
    ],
)
def test_the_calls_are_those_of_the_asyncio_client(theirs: type, ours: type, left_out: set[str]) -> None:
    assert public_names(ours) >= public_names(theirs) - left_out
    for name in sorted({"__init__", *public_names(theirs) - left_out}):
        if inspect.isfunction(getattr(theirs, name)) and (
            name != "__init__" or ours.__name__ in ("Client", "Discovery")
        ):
            assert signature_of(ours, name) == signature_of(theirs, name), f"{ours.__name__}.{name}"


async def test_many_threads_call_one_client(replicas: list[FakeReplica]) -> None:
    def call(hq: sync.Client, n: int) -> str:
        hq.create(instance(f"web-{n}"))
        return hq.get(f"web-{n}").instance.meta.id

    def call_from_threads() -> list[str]:
        with sync.Client([r.address for r in replicas], timeout_s=_SETTLES_S) as hq, ThreadPoolExecutor(8) as threads:
            made = list(threads.map(lambda n: call(hq, n), range(40)))
            assert sorted(i.meta.id for page in hq.find() for i in page.instances) == sorted(made)
            assert hq.admin.get_guard().guard.expected == 3
            return made

    assert await asyncio.to_thread(call_from_threads) == [f"web-{n}" for n in range(40)]
    assert [t.name for t in threading.enumerate()].count("hqclient") == 1


async def test_a_handle_notifies_those_who_subscribed_before_it_was_entered(
    history: History, telling: list[TellingReplica]
) -> None:
    history.write("web-1", "web-2")

    def follow() -> list[list[str]]:
        told: list[list[str]] = []
        web = sync.Discovery([r.address for r in telling]).service("web", port="http")
        web.on_change(lambda changes: told.append([web.pick().service, *(e.instance_id for e in changes.added)]))
        with web:
            web.ready(_SETTLES_S)
            with web.using() as endpoint:
                assert web.uses(endpoint) == 1
            assert len(next(web.changes()).added) == 2
        return told

    assert await asyncio.to_thread(follow) == [["web", "web-1", "web-2"]]
    await eventually(lambda: BACKGROUND.call(lambda: len(asyncio.all_tasks())) == 1, what="nothing but its own task")


def test_a_call_that_fails_says_in_one_line_what_is_wrong() -> None:
    once = ClientSettings(retry=RetrySettings(max_rounds=1))  # a last try just before the end would have no time
    with sync.Client(["127.0.0.1:1"], timeout_s=30.0, settings=once) as hq, pytest.raises(HqApiError) as failed:
        hq.get("web-1")
    assert str(failed.value) == "cannot connect to 127.0.0.1:1: nothing listens there: start it, or check the port"
    assert [entry.name for entry in failed.traceback][-1] == "run"


def test_a_handle_says_how_to_use_it() -> None:
    web = sync.Discovery(["127.0.0.1:1"]).service("web", port="http")
    with pytest.raises(RuntimeError, match="enter it first: with the handle of web"):
        web.pick()
    with pytest.raises(ValueError, match="address of at least one replica"):
        sync.Client([])


_LEFT_OPEN = """
import sys
from hqclient.sync import Client, Discovery
hq = Client(sys.argv[1:], timeout_s=30)
hq.get("web-1")
web = Discovery(sys.argv[1:]).service("web", port="http").__enter__()
web.on_change(print)
hq.watch().__enter__().__next__
print("done")
"""

_CLOSED = """
import os, sys, time
from hqclient.sync import Client, Discovery

def sockets():
    with os.scandir("/proc/self/fd") as found:
        return sum(os.readlink(each.path).startswith("socket:") for each in found if os.path.islink(each.path))

for _ in range(20):
    with Client(sys.argv[1:], timeout_s=30) as hq, Discovery(sys.argv[1:]).service("web", port="http") as web:
        hq.get("web-1")
        web.ready(30, at_least=0)
ends = time.monotonic() + 30
while sockets() > 12 and time.monotonic() < ends:
    time.sleep(0.05)
assert sockets() <= 12, sockets()  # gRPC keeps some of its own
print("done")
"""

_FORKED = """
import os, sys
from hqclient.sync import Client, Discovery
hq = Client(sys.argv[1:], timeout_s=30)
web = Discovery(sys.argv[1:]).service("web", port="http")
web.__enter__()
hq.get("web-1")
children = []
for _ in range(3):
    if not (child := os.fork()):
        hq.get("web-1")
        web.ready(30, at_least=0)
        sys.exit(7)
    children.append(child)
assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [7, 7, 7]
hq.get("web-1")
web.ready(30, at_least=0)
print("done")
"""


@pytest.mark.parametrize(
    "script",
    [_LEFT_OPEN, _FORKED, pytest.param(_CLOSED, marks=pytest.mark.long)],
    ids=["left open", "forked", "closed, and nothing left behind"],
)
async def test_the_interpreter_ends_whether_clients_were_closed_or_not(
    script: str, history: History, telling: list[TellingReplica]
) -> None:
    for replica in telling:
        replica.stored.put(instance("web-1"))
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", script, *(r.address for r in telling)]
    run = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=100, check=False, env=dict(os.environ)
    )
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, ["done"]), run.stderr


async def test_the_page_runs_as_written(history: History, telling: list[TellingReplica]) -> None:
    history.write("shop-1")
    page = (Path(__file__).parents[2] / "docs" / "python-sync.md").read_text()
    script = page.split("```python\n")[1].split("```")[0].replace("127.0.0.1:7071", telling[0].address)
    script = script.replace(', state_dir=".hq/discovery"', "")
    run = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert run.stdout == "3 instances\n[] LIVE\n", run.stderr  # the replica tells of another service


def test_a_process_that_only_imports_the_client_starts_no_thread() -> None:
    text = "import threading, hqclient.sync; print(threading.active_count())"
    assert subprocess.check_output([sys.executable, "-c", text], text=True) == "1\n"
