"""What runs is apart from where: snapshots that run the same share a revision, and none takes it from another."""

from __future__ import annotations

import itertools
import json
import random
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import CONDITION_STATUS_FALSE, CONDITION_STATUS_TRUE, Instance
from nanny.actions import needs
from nanny.actions.levels import look_at
from nanny.actions.needs import Needs, need_of, needs_of
from nanny.actions.subject import ServiceContext
from nanny.automaton.service import ManagedService, RunningAction, SnapshotState
from nanny.automaton.states import Action, Current, SnapshotEvent, Target
from nanny.automaton.step import SnapshotAutomaton, refusal, step_refusal
from nanny.rollout.policy import Policy
from nanny.rollout.views import Key
from nanny.snapshots.content import Content, read_content
from nanny.snapshots.wanted import INSTALLED, READY, lowered_instance, rank_of, switched_instance, target_of
from nanny.world.pictures import ServiceView
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ServiceRecord
from tests.nanny.search import is_live
from tests.nanny.virtual_cloud import VirtualCloud, virtual_cloud
from tests.support.virtual_time import VirtualClock, in_virtual_time

NAMES: Final = ("w1", "w2", "w3")
PLACES: Final = {"a": ("w1", "w2"), "b": ("w1", "w2", "w3"), "c": ("w2", "w3")}


def content(name: str, runs: str) -> Content:
    instances = [{"id": one, "installation": "ams"} for one in PLACES[name]]
    revision = {"id": name, "container": [{"name": "main", "command": [runs]}]}
    text = json.dumps({"service": "web", "instances": instances, "revisions": [revision]})
    return read_content("web", text.encode(), ["ams"], as_id=name)


CONTENTS: Final = {"a": content("a", "one"), "b": content("b", "one"), "c": content("c", "two")}


class Nodes:
    """HQ and agents that do at once what they are told."""

    def __init__(self) -> None:
        self.picture = ServiceView({}, VirtualClock())
        self.picture.seen["ams"] = SeenNow()  # type: ignore[assignment]
        self.version = 0

    def store(self, key: Key, after: Instance | None) -> None:
        if after is None:
            return self.picture.put_instance(key, None)
        self.version += 1
        stored = Instance()
        stored.CopyFrom(after)
        stored.meta.version = self.version
        del stored.status.revision[:]
        for revision in stored.spec.revision:
            status = stored.status.revision.add(id=revision.id, spec_version=self.version)
            is_there = revision.target != instance_pb2.REVISION_TARGET_CREATED
            status.installed.status = CONDITION_STATUS_TRUE if is_there else CONDITION_STATUS_FALSE
            status.ready.status = CONDITION_STATUS_TRUE if revision.target == READY else CONDITION_STATUS_FALSE
        runs = any(revision.target == READY for revision in stored.spec.revision)
        stored.status.ready.status = CONDITION_STATUS_TRUE if runs else CONDITION_STATUS_FALSE
        stored.status.agent.status = CONDITION_STATUS_TRUE
        return self.picture.put_instance(key, stored)

    def target(self, snapshot: str, name: str) -> int | None:
        instance = self.picture.instances.get(("ams", name))
        return target_of(instance, CONTENTS[snapshot].revision_id) if instance is not None else None


class SeenNow:
    epoch, error = "e", ""


class History:
    """One service; actions run to their end, or are cancelled by the next order before they begin."""

    def __init__(self, rng: random.Random, find_needs: Callable[[ManagedService, Content], Needs]) -> None:
        self.rng, self.nodes, self.step = rng, Nodes(), SnapshotAutomaton()
        self.service = ManagedService(rolls_back=rng.random() < 0.5)
        self._needs = find_needs

    def order(self) -> None:
        snapshot, target = self.rng.choice("abc"), self.rng.choice(list(Target))
        if self.rng.random() < 0.1 and is_live(self.service):
            self.service = self.step.stop_service(self.service)
        elif not refusal(self.service, snapshot, target):
            fill = target is Target.CREATED and self.rng.random() < 0.5
            self.service = self.step.set_target(self.service, snapshot, target, fill=fill)

    def work(self) -> None:
        """One action, or all of them."""
        for _ in range(self.rng.choice((1, 30))):
            running = list(self.service.running())
            if not running:
                return
            one = self.rng.choice(running)
            if one.action is Action.ACTIVATE and self.rng.random() < 0.3:
                self._in_steps(one)
                self.check()
                continue
            self.act(one)
            self.check()
            self.service = self.step.end_action(self.service, one.snapshot, one.number, SnapshotEvent.DONE)
            self.check()

    def _in_steps(self, running: RunningAction) -> None:
        """A few instances are switched; then people promote or abort it, or nobody does anything."""
        self._switch(CONTENTS[running.snapshot], 1)
        said = self.rng.choice(("promote", "abort", ""))
        if said and not step_refusal(self.service, running.snapshot):
            if said == "promote":
                self.service = self.step.promote_step(self.service, running.snapshot, 2)
            else:
                self.service = self.step.abort_rollout(self.service, running.snapshot)

    def act_in_part(self, running: RunningAction) -> None:
        """One instance is switched, or one look's writes are done."""
        content = CONTENTS[running.snapshot]
        if running.action is Action.ACTIVATE:
            self._switch(content, 1)
        else:
            self._lower(running, content)

    def act(self, running: RunningAction) -> None:
        content = CONTENTS[running.snapshot]
        if running.action is Action.ACTIVATE:
            self._switch(content, len(content.placements))
            return
        for _ in range(20):
            if not self._lower(running, content):
                return
        raise AssertionError(f"{running} does not end: {self.service}")

    def _switch(self, content: Content, count: int) -> None:
        for key in sorted(content.placements)[:count]:
            after = switched_instance(content, key, self._subject().held_instance(key), "")
            if after is not None:
                self.nodes.store(key, after)

    def _lower(self, running: RunningAction, content: Content) -> bool:
        """One look of an action that is no roll-out; whether there was something to do."""
        subject, wanted = self._subject(), self.service.wanted_active()
        kept = CONTENTS[wanted].placements if running.action is Action.DEACTIVATE and wanted else ()
        look = look_at(subject, content, running.action, True, kept, (), self._needs(self.service, content))
        for key in look.costly:
            held = subject.held_instance(key)
            after = lowered_instance(content.revision_id, held, INSTALLED, "") if held is not None else None
            if after is not None:
                self.nodes.store(key, after)
        for write in look.writes:
            self.nodes.store(write.key, write.after)
        return bool(look.writes or look.costly)

    def _subject(self) -> ServiceContext:
        return ServiceContext("web", ServiceRecord(), self.service, Policy(), self.nodes.picture)

    def check(self) -> None:
        """What each snapshot's state says is true of every instance that it names."""
        for snapshot, state in self.service.tuples.items():
            if state.current in (Current.ACTIVE, Current.PREPARED):
                least = READY if state.current is Current.ACTIVE else INSTALLED
                for name in PLACES[snapshot]:
                    there = self.nodes.target(snapshot, name)
                    assert rank_of(there) >= rank_of(least), f"{snapshot} is {state.current}, {name} has {there}"

    def check_rest(self) -> None:
        """Nothing runs that no snapshot wants; where people aborted, what served before is left alone."""
        if list(self.service.running()):
            return
        wanted, tuples = self.service.wanted_active(), self.service.tuples
        is_short = bool(wanted) and tuples[wanted].current is not Current.ACTIVE
        pending = [one for one, state in tuples.items() if is_short and state.current is Current.DEACTIVATE_PENDING]
        for key, instance in self.nodes.picture.instances.items():
            runs = [one.id for one in instance.spec.revision if one.target == READY]
            named = any(key in CONTENTS[one].placements for one in (wanted, *pending) if one)
            assert not runs or named, f"{key} runs {runs}, {wanted or 'none'} is wanted ACTIVE: {self.service}"


class Search:
    """Every state of two snapshots that share a revision, and of HQ beneath them, by every order and every outcome.

    Actions end, fail after a part of their work, or are left where they are by the next order.
    """

    def __init__(self, *, rolls_back: bool) -> None:
        self._history = History(random.Random(1), find_needs)
        self._history.service = ManagedService(rolls_back=rolls_back)

    def states(self) -> int:
        """How many there are. Raises AssertionError for one in which a snapshot's state is not true."""
        first = self._history.service, dict[Key, Instance]()
        seen, waiting = {_identity(*first)}, deque([first])
        while waiting:
            for after in self._after(*waiting.popleft()):
                if (identity := _identity(*after)) not in seen:
                    seen.add(identity)
                    waiting.append(after)
        return len(seen)

    def _after(self, service: ManagedService, instances: Mapping[Key, Instance]) -> Iterator[tuple[Any, Any]]:
        history = self._history
        for move in self._moves(service):
            history.service, history.nodes = service, Nodes()
            for key, instance in instances.items():
                history.nodes.store(key, instance)
            move()
            history.check()
            history.check_rest()
            yield history.service, dict(history.nodes.picture.instances)

    def _moves(self, service: ManagedService) -> Iterator[Callable[[], None]]:
        history, step = self._history, self._history.step
        for snapshot, target, fill in itertools.product("ab", Target, (False, True)):
            if not refusal(service, snapshot, target) and (not fill or target is Target.CREATED):
                yield partial(self._becomes, partial(step.set_target, service, snapshot, target, fill=fill))
        if is_live(service):
            yield partial(self._becomes, partial(step.stop_service, service))
        for one in service.running():
            end = partial(step.end_action, service, one.snapshot, one.number)
            yield partial(self._acts, history.act, one, partial(end, SnapshotEvent.DONE))
            for event in (SnapshotEvent.FAILED, SnapshotEvent.CANCELLED):
                yield partial(self._acts, history.act_in_part, one, partial(end, event))
            yield partial(self._acts, history.act_in_part, one, lambda: service)
            if one.action is Action.ACTIVATE and not step_refusal(service, one.snapshot):
                promoted = partial(step.promote_step, service, one.snapshot, 2)
                yield partial(self._acts, history.act_in_part, one, promoted)
                aborted = partial(step.abort_rollout, service, one.snapshot)
                yield partial(self._acts, history.act_in_part, one, aborted)

    def _becomes(self, service: Callable[[], ManagedService]) -> None:
        self._history.service = service()

    def _acts(
        self, act: Callable[[RunningAction], None], one: RunningAction, service: Callable[[], ManagedService]
    ) -> None:
        act(one)
        self._becomes(service)


def _identity(service: ManagedService, instances: Mapping[Key, Instance]) -> Hashable:
    """States that differ only in numbers are one."""
    tuples = {one: replace(state, action=0) for one, state in service.tuples.items()}
    held = {(key, one.id, one.target) for key, instance in instances.items() for one in instance.spec.revision}
    return frozenset(tuples.items()), service.last_active, service.rolling_back, frozenset(held), frozenset(instances)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rolls_back", [False, True])
def test_in_no_state_is_a_shared_revision_taken_from_a_snapshot_that_needs_it(*, rolls_back: bool) -> None:
    assert Search(rolls_back=rolls_back).states() > 10_000


def find_needs(service: ManagedService, content: Content) -> Needs:
    others = (
        (one, state, CONTENTS[one].placements)
        for one, state in service.tuples.items()
        if one != content.id and CONTENTS[one].revision_id == content.revision_id
    )
    return needs_of(others, {})


def search(find: Callable[[ManagedService, Content], Needs], count: int) -> None:
    rng = random.Random(5)
    for _ in range(count):
        history = History(rng, find)
        for _ in range(8):
            history.order()
            history.work()
            history.check()
        for _ in range(20):
            history.work()
        history.check_rest()


@pytest.mark.long
@in_virtual_time
async def test_no_history_takes_a_shared_revision_from_a_snapshot_that_needs_it() -> None:
    search(find_needs, 300)


@in_virtual_time
async def test_the_search_finds_snapshots_that_look_at_their_own_need_only() -> None:
    with pytest.raises(AssertionError):
        search(lambda *_: {}, 300)


@in_virtual_time
async def test_the_search_finds_that_pending_snapshots_still_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    right = need_of
    monkeypatch.setattr(needs, "need_of", lambda state: INSTALLED if right(state) == READY else right(state))
    with pytest.raises(AssertionError):
        search(find_needs, 300)


def test_a_snapshot_that_is_switched_off_keeps_its_files_until_its_own_removal() -> None:
    """It may be ordered PREPARED again meanwhile, which says that its files are there."""
    assert need_of(SnapshotState(Current.DEACTIVATING, Target.DESTROYED)) == INSTALLED


def test_the_name_of_a_revision_is_no_part_of_what_runs() -> None:
    assert CONTENTS["a"].revision_id == CONTENTS["b"].revision_id != CONTENTS["c"].revision_id


@pytest.mark.long
@in_virtual_time
async def test_scaling_and_labels_restart_nothing_that_stays_and_a_new_revision_does() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1")
        await cloud.activate(await cloud.add("v1", names=cloud.names[:4]))
        before = cloud.agents.starts()
        bigger = await cloud.add("v1")
        await cloud.activate(bigger)
        assert await cloud.runs(bigger) == set(cloud.names)
        smaller = await cloud.add("v1", names=cloud.names[:3])
        await cloud.activate(smaller)
        await cloud.until(bigger, pb.CURRENT_STATE_PREPARED)
        assert await cloud.runs(smaller) == set(cloud.names[:3])
        labelled = await cloud.add("v1", names=cloud.names[:3], tier="gold")
        await cloud.target(labelled)
        batches = []
        while (state := await cloud.state(labelled)).current != pb.CURRENT_STATE_ACTIVE:
            batches.append(state.action.batches_done)
            await cloud.sleep(0.5)
        assert max(batches) == 1, "labels cost no batch each"
        instances = await cloud.instances()
        assert {dict(instances[name].meta.labels).get("tier") for name in cloud.names[:3]} == {"gold"}
        after = cloud.agents.starts()
        assert {name: after[name] for name in cloud.names[:3]} == {name: before[name] for name in cloud.names[:3]}
        assert await cloud.shown_state(bigger, "web-0") == "Prepared"
        await cloud.target(bigger, pb.TARGET_DESTROYED)
        await cloud.until(bigger, pb.CURRENT_STATE_UNSPECIFIED)
        assert await cloud.runs(labelled) == set(cloud.names[:3])
        await cloud.activate(await cloud.add("v2", names=cloud.names[:3]))
        assert cloud.agents.starts() != after


@pytest.mark.long
@in_virtual_time
async def test_a_weight_of_the_snapshot_is_written_at_once_restarts_nothing_and_is_brought_back() -> None:
    async with virtual_cloud(4) as cloud:
        await cloud.create(maxUnavailable="1")
        plain = await cloud.add("v1")
        await cloud.activate(plain)
        before = cloud.agents.starts()
        assert await weights(cloud) == [100] * 4
        lighter = await cloud.add("v1", weight=10)
        await cloud.activate(lighter)
        assert await weights(cloud) == [10] * 4
        changed = (await cloud.instances())["web-0"]
        changed.spec.weight = 70
        await cloud.hq.update(changed, fields=["spec.weight"])
        assert await weights(cloud) == [70, 10, 10, 10]
        while not (await cloud.service()).drift:
            await cloud.sleep(0.1)
        await cloud.sleep(60.0)
        assert (await weights(cloud), list((await cloud.service()).drift)) == ([10] * 4, [])
        await cloud.activate(plain)
        assert await weights(cloud) == [10] * 4  # this one says nothing of weights
        await cloud.activate(await cloud.add("v1", weight=100))
        assert await weights(cloud) == [100] * 4
        assert cloud.agents.starts() == before


async def weights(cloud: VirtualCloud) -> list[int]:
    instances = (await cloud.instances()).values()
    return [one.spec.weight if one.spec.HasField("weight") else 100 for one in instances]
