"""Real processes of Wall-E under faults, judged from the store's history; and the checker itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from google.protobuf.message import Message

from store.port import Batch, KeyChange
from tests.checker.repairs import ALLOWED, APART, LEFT_ALONE, ONCE, History, dns_once, once
from tests.rig.walle_run import WalleRun
from walle.fuses.limits import parse_limit
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATUS_DEAD,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_REBOOT,
    STAGE_RUNNING,
    Host,
    Intent,
    Operation,
)
from wallepb.v1.project_pb2 import Credit, Fuse, Mark, Project, Switch, Switching


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_never_more_repairs_than_allowed_whatever_is_killed_paused_or_cut_off(tmp_path: Path) -> None:
    run = WalleRun(tmp_path, seed=1, say=lambda _: None)
    await run.run(20.0)
    assert run.broken == []
    assert run.repairs >= 2, run.struck  # one that never repairs is safe and useless
    assert run.dns_fixes >= 1, run.struck


class Story:
    """A history, told record by record."""

    def __init__(self, *limit: str) -> None:
        self.history, self.revision = History(b"/w/", {}), 0
        self.put("project/web", Project(id="web", limits={"ssh": parse_limit(limit), "dead": parse_limit(["1m:1"])}))

    def put(self, key: str, record: Message) -> None:
        self.put_all({key: record})

    def put_all(self, records: Mapping[str, Message]) -> None:
        """In one transaction."""
        self.revision += 1
        now = self.revision
        changes = [KeyChange(b"/w/" + key.encode(), one.SerializeToString(), now, now) for key, one in records.items()]
        self.history.replay(Batch(now, changes))

    def repair(self, name: str, at_s: int) -> None:
        doing = Operation(id=f"{name}-{at_s}", kind=OPERATION_KIND_REBOOT, check="ssh", stage=STAGE_RUNNING)
        doing.since_ms = at_s * 1000
        host = Host(name=name, project="web", state=HOST_STATE_ASSIGNED)
        self.put(f"host/{name}", host)  # the operation before is over
        host.operation.CopyFrom(doing)
        self.put(f"host/{name}", host)

    def dies(self, name: str, at_s: int) -> None:
        host = Host(name=name, project="web", state=HOST_STATE_ASSIGNED, status=HOST_STATUS_DEAD)
        fuses = {
            f"fuse/{owner}": Fuse(id=owner, mark=[Mark(counter=counter, host=name, at_ms=at_s * 1000)])
            for owner, counter in (("web", "dead"), ("global", "max_dead_hosts"))
        }
        self.put_all({f"host/{name}": host, **fuses})

    def fuse(self, *, off: bool, credits_: int = 0, until_s: int = 0) -> None:
        fuse = Fuse(id="web", healing=Switch(off=off))
        given = [Credit(counter="ssh", left=credits_, until_ms=until_s * 1000)] if credits_ else []
        fuse.switching.append(Switching(automation="healing", off=off, credit=given, reason=str(self.revision)))
        self.put("fuse/web", fuse)

    def blamed(self) -> list[str]:
        assert all(one.promise is ALLOWED for one in self.history.broken)
        return [one.what.partition(":")[0].partition(" ")[0] for one in self.history.broken]


def test_the_checker_blames_one_more_than_the_limit_and_nobody_once_the_window_has_passed() -> None:
    story = Story("1m:2")
    for name, at_s in (("a", 10), ("a", 20), ("b", 30), ("c", 79), ("d", 91)):
        story.repair(name, at_s)
    assert story.blamed() == ["c"]


def test_the_checker_knows_credits_until_they_are_spent_or_over() -> None:
    story = Story("1m:1")
    story.fuse(off=True)
    story.fuse(off=False, credits_=2, until_s=30)
    for name in "abc":
        story.repair(name, 20)
    assert story.blamed() == []
    story.repair("d", 21)
    assert story.blamed() == ["d"]
    late = Story("1m:1")
    late.fuse(off=True)
    late.fuse(off=False, credits_=2, until_s=30)
    for name in "ab":
        late.repair(name, 40)
    assert late.blamed() == ["b"]


def test_the_checker_blames_what_begins_while_a_fuse_is_out_and_forgets_at_switching_on() -> None:
    story = Story("1m:1")
    story.repair("a", 10)
    story.fuse(off=True)
    story.repair("b", 11)
    assert story.blamed() == ["b", "b"]  # off, and over the limit
    story.fuse(off=False)
    story.repair("c", 12)
    assert story.blamed() == ["b", "b"]


def test_the_checker_counts_resets_against_operations_that_came_to_their_work() -> None:
    story = Story("1m:9")
    story.repair("a", 10)
    story.repair("a", 20)
    assert [one.promise for one in once({"a": 2, "b": 1}, story.history.intents)] == [ONCE]


def test_the_checker_counts_hosts_that_are_given_up_and_blames_what_is_done_to_them() -> None:
    story = Story("1m:9")
    story.dies("a", 10)
    story.dies("b", 20)
    assert story.blamed() == ["b"]
    story.dies("c", 81)
    assert story.blamed() == ["b"]
    dead = Host(name="c", project="web", state=HOST_STATE_ASSIGNED, status=HOST_STATUS_DEAD)
    dead.operation.CopyFrom(Operation(id="late", kind=OPERATION_KIND_REBOOT, check="ssh", since_ms=72_000))
    story.put("host/c", dead)
    assert [one.promise for one in story.history.broken] == [ALLOWED, LEFT_ALONE]


def test_the_checker_blames_a_host_that_is_given_up_though_no_limit_counted_it() -> None:
    story = Story("1m:9")
    story.put("host/a", Host(name="a", project="web", state=HOST_STATE_ASSIGNED, status=HOST_STATUS_DEAD))
    assert story.blamed() == ["a", "a"]


def test_the_checker_blames_a_limit_of_dns_that_switches_healing_off() -> None:
    story = Story("1m:9")
    story.put("fuse/web", Fuse(id="web", dns=Switch(off=True, tripped_by="dns-fixes 1d:5")))
    assert story.history.broken == []
    story.put("fuse/web", Fuse(id="web", healing=Switch(off=True, tripped_by="dns-fixes 1d:5")))
    assert [one.promise for one in story.history.broken] == [APART]


def test_the_checker_counts_dns_updates_against_attempts_that_were_stored() -> None:
    story = Story("1m:9")
    host = Host(name="a", project="web", state=HOST_STATE_ASSIGNED)
    doing = Operation(id="d", kind=OPERATION_KIND_DNS_FIX, check="dns", stage=STAGE_RUNNING, since_ms=1_000)
    doing.intent.CopyFrom(Intent(attempts=2))
    host.operation.CopyFrom(doing)
    story.put("host/a", host)
    assert list(dns_once({"a": 2}, story.history.dns_attempts)) == []
    assert [one.promise for one in dns_once({"a": 3, "b": 1}, story.history.dns_attempts)] == [ONCE, ONCE]
