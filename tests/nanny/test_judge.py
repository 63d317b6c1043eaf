"""The judge over a model: no bad revision becomes ACTIVE, every good one does, and one can always roll back.

Crash times, dead hosts and lost locations, over sizes, batches and policies. Each rule left out makes it fail.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from control.amounts import Amount
from nanny.rollout import batches, failures, judge, moves, plan
from nanny.rollout.policy import Policy
from nanny.rollout.views import SWITCHED, Stage
from tests.nanny.judge_world import NEW, OLD, Host, Looks, Order, Program, World, good, never

Scenario = Callable[[int], World]


def crashes(every_s: float, *, share: int = 1) -> Program:
    """It is ready after 10 s, and ends so long after each start; `share`: on each so-many-th host only."""

    def program(number: int, age_s: float) -> Looks:
        if number % share:
            return good(number, age_s)
        restarts, since_s = divmod(age_s, every_s)
        return Looks(since_s >= 10.0, int(restarts))

    return program


def on(numbers: set[int], program: Program) -> Program:
    """There it does this, and elsewhere it is good."""
    return lambda number, age_s: (program if number in numbers else good)(number, age_s)


def flaps(_number: int, age_s: float) -> Looks:
    """Its readiness comes and goes, without a restart."""
    return Looks(age_s % 40.0 >= 15.0)


def waits_for_sidecar(_number: int, age_s: float) -> Looks:
    """It restarts until its sidecar is there."""
    return Looks(age_s >= 50.0, min(int(age_s / 10.0), 4))


def world(program: Program = good, **more: object) -> Scenario:
    return lambda size: World(size, {OLD: good, NEW: program}, **more)  # type: ignore[arg-type]


def dead_before(count: int, heard_s: float = -1e6) -> Scenario:
    """Hosts that are dead when the order begins; HQ heard them last at this time."""

    def make(size: int) -> World:
        made = World(size)
        for host in made.hosts[:count]:
            host.dead, host.heard_s = True, heard_s
            made.own.add(host.number)
        made.tick()
        return made

    return make


def sick_before(size: int) -> World:
    """The first one is not ready before, nor afterwards."""
    made = World(size, {OLD: on({0}, never), NEW: on({0}, never)}, own={0})
    made.tick()
    return made


def lost_location(size: int) -> World:
    """It goes away in the middle, for an hour."""
    return World(size, events={100.0: lambda one: one.away.add("b"), 3_700.0: lambda one: one.away.clear()})


def dies(number: int, at_s: float) -> Scenario:
    """A host dies on its own account."""

    def die(one: World) -> None:
        one.hosts[number].dead = True
        one.own.add(number)

    return lambda size: World(size, events={at_s: die})


def rebooted(size: int) -> World:
    """The first host is rebooted with leave while it soaks, which takes five minutes."""

    def begin(one: World) -> None:
        one.hosts[0].held = True
        one.own.add(0)
        one.programs[NEW] = on({0}, never)

    def end(one: World) -> None:
        one.hosts[0].held = False
        one.own.clear()
        one.programs[NEW] = good

    return World(size, events={100.0: begin, 400.0: end})


GOOD: dict[str, Scenario] = {
    "good": world(),
    "slow": world(lambda _, age_s: Looks(age_s >= 200.0)),
    "waits for a sidecar": world(waits_for_sidecar),
    "one host dead for long": dead_before(1),
    "one host died just before": dead_before(1, heard_s=0.0),
    "one was sick before": sick_before,
    "a location lost for an hour": lost_location,
    "a host dies while the first batch soaks": dies(0, 150.0),
    "a host dies before its turn": dies(5, 150.0),
    "a host is rebooted with leave": rebooted,
    "the probe of one host flaps": world(on({0}, flaps)),
    "the last host never becomes ready": world(on({5}, never), own={5}),
}
BAD: dict[str, Scenario] = {
    "crashes every 25 s": world(crashes(25.0)),
    "crashes every 2 min": world(crashes(120.0)),
    "crashes every 4 min": world(crashes(240.0)),
    "crashes every 25 s on a third of the hosts": world(crashes(25.0, share=3)),
    "crashes every 4 min on a third of the hosts": world(crashes(240.0, share=3)),
    "never ready": world(never),
    "never ready on a third of the hosts": world(on(set(range(0, 30, 3)), never)),
    "restarts for ever": world(lambda _, age_s: Looks(ready=False, restarts=int(age_s / 10))),
    "readiness comes and goes": world(flaps),
    "kills its host after a minute": world(kills_after_s=60.0),
    "kills its host at once": world(never, kills_after_s=5.0),
}


def beside_dead(count: int, heard_s: float, scenario: Scenario) -> Scenario:
    """The same, where the last hosts are dead already."""

    def make(size: int) -> World:
        made = scenario(size)
        for host in made.hosts[-count:]:
            host.dead, host.heard_s = True, heard_s
            made.own.add(host.number)
        made.tick()
        return made

    return make


def lose_location(scenario: Scenario, name: str) -> Scenario:
    """The same, where a location does not answer for an hour, from before most of them have shown themselves."""

    def make(size: int) -> World:
        made = scenario(size)
        made.events = {20.0: lambda one: one.away.add(name), 3_620.0: lambda one: one.away.clear()}
        return made

    return make


BESIDE: dict[str, Callable[[Scenario], Scenario]] = {
    "a host dead for long": partial(beside_dead, 1, -1e6),
    "a host that died just before": partial(beside_dead, 1, 0.0),
    "a location lost at the first batch": partial(lose_location, name="a"),
    "a location lost later on": partial(lose_location, name="b"),
}
UNAVAILABLE = (Amount(1), Amount(10, is_percent=True), Amount(50, is_percent=True))
FAILURES = (Amount(10, is_percent=True), Amount(20, is_percent=True))


def policies(*sizes: int) -> list[tuple[int, Policy]]:
    return [
        (size, Policy(max_unavailable=unavailable, max_failures=failures))
        for size, unavailable, failures in itertools.product(sizes, UNAVAILABLE, FAILURES)
    ]


# Of six, either share of failures is one.
EVERYWHERE = [pytest.param(policies(6)[::2], id="6"), pytest.param(policies(30), id="30", marks=pytest.mark.long)]


def succeeds(scenario: Scenario, size: int, policy: Policy) -> None:
    """A good revision becomes ACTIVE, and the floor holds: failures of their own are counted out."""
    order = Order(scenario(size), policy).begin()
    end = order.run()
    assert isinstance(end, moves.Finished), f"{policy.max_unavailable} of {size}: {end}"
    floor = size - policy.unavailable(size) - policy.failures(size)
    assert order.world.lowest >= floor, f"{order.world.lowest} of {size} served"


def is_caught(scenario: Scenario, size: int, policy: Policy) -> None:
    """A bad revision does not become ACTIVE, costs little more than had shown itself, and can be rolled back."""
    order = Order(scenario(size), policy).begin()
    end = order.run()
    what = f"{policy.max_unavailable} and {policy.max_failures} of {size}: {end}"
    killer = order.world.kills_after_s is not None
    assert isinstance(end, moves.Failed) or (killer and "holds" in getattr(end, "why", "")), what
    lost = policy.failures(size) + 2 * policy.unavailable(size)
    assert order.world.lowest >= size - lost, f"{order.world.lowest} served, {what}"
    back = Order(order.world, policy, OLD).begin(order.progress.ailing)
    assert isinstance(back.run(), moves.Finished), f"{what}; back: {back.end}"
    assert all(host.wanted == OLD for host in order.world.hosts)


@pytest.mark.parametrize("policies", EVERYWHERE)
@pytest.mark.parametrize("what", GOOD)
def test_every_good_revision_becomes_active_and_the_floor_holds(what: str, policies: list[tuple[int, Policy]]) -> None:
    for size, policy in policies:
        succeeds(GOOD[what], size, policy)


@pytest.mark.parametrize("policies", EVERYWHERE)
@pytest.mark.parametrize("what", BAD)
def test_no_bad_revision_becomes_active_and_one_can_always_roll_back(
    what: str, policies: list[tuple[int, Policy]]
) -> None:
    for size, policy in policies:
        is_caught(BAD[what], size, policy)


@pytest.mark.long
@pytest.mark.parametrize("policies", EVERYWHERE)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("what", BAD)
def test_no_bad_revision_becomes_active_beside_dead_hosts_or_lost_locations(
    what: str, beside: str, policies: list[tuple[int, Policy]]
) -> None:
    for size, policy in policies:
        is_caught(BESIDE[beside](BAD[what]), size, policy)


def test_a_revision_that_crashes_after_two_minutes_costs_its_first_batch() -> None:
    order = Order(BAD["crashes every 2 min"](30), Policy()).begin()
    assert isinstance(order.run(), moves.Failed)
    assert order.switched == 3


def test_a_host_that_a_bad_revision_broke_does_not_keep_the_others_from_rolling_back() -> None:
    made = World(6, {OLD: good, NEW: never})
    order = Order(made, Policy()).begin()
    assert isinstance(order.run(), moves.Failed)
    made.programs[OLD] = on({0}, lambda number, age_s: Looks(age_s > 1e5))
    back = Order(made, Policy(), OLD).begin(order.progress.ailing)
    assert isinstance(back.run(), moves.Finished), back.end


SIX, THIRTY = (6, Policy()), (30, Policy())
FORGIVING = 30, Policy(max_failures=Amount(50, is_percent=True))


def _breaks(check: Callable[[Scenario, int, Policy], None], scenario: Scenario, size: int, policy: Policy) -> None:
    with pytest.raises(AssertionError):
        check(scenario, size, policy)


def test_without_a_soak_a_bad_revision_becomes_active() -> None:
    size, policy = SIX
    _breaks(is_caught, BAD["crashes every 4 min"], size, replace(policy, soak_s=0.0))


def test_without_three_restarts_as_a_final_failure_many_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    is_caught(BAD["crashes every 2 min"], *FORGIVING)
    monkeypatch.setattr(judge, "RESTARTS", 10**6)
    order = Order(BAD["crashes every 2 min"](30), FORGIVING[1]).begin()
    order.run()
    assert order.switched > 2 * FORGIVING[1].unavailable(30)


def test_without_time_for_a_sidecar_a_good_revision_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "START_S", 0.0)
    _breaks(succeeds, GOOD["waits for a sidecar"], *SIX)


def test_without_excusing_hosts_that_were_ailing_before_a_good_revision_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Order, "begin", lambda self, ailing=None: self)
    _breaks(succeeds, GOOD["one was sick before"], *SIX)


def test_without_fresh_reports_hosts_are_killed_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Order, "_have_reported", lambda self, instances: True)
    _breaks(is_caught, BAD["kills its host after a minute"], *SIX)


def test_without_a_hold_hosts_are_killed_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_hold", lambda *_: "")
    _breaks(is_caught, BAD["kills its host after a minute"], *THIRTY)


def test_without_telling_dead_hosts_from_failing_ones_a_good_revision_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = Policy(progress_deadline_s=400.0, soak_s=100.0)
    succeeds(GOOD["one host died just before"], 6, impatient)
    right, dead = World._stage, {Stage.UNTOUCHED, Stage.UNHEARD, Stage.LOST, Stage.GONE}

    def unexcused(self: World, host: Host, revision: str, min_ready_s: float) -> Stage:
        stage = right(self, host, revision, min_ready_s)
        return Stage.UNDER_WAY if stage in dead else stage

    monkeypatch.setattr(World, "_stage", unexcused)
    _breaks(succeeds, GOOD["one host died just before"], 6, impatient)


def test_if_tolerated_failures_take_room_a_roll_out_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    succeeds(world(on({2}, never), own={2}), 6, replace(SIX[1], locations=("a", "b")))
    right = batches.batch_room
    monkeypatch.setattr(
        batches,
        "batch_room",
        lambda policy, stages, progress: right(policy, stages, replace(progress, failed=frozenset())),
    )
    _breaks(succeeds, world(on({2}, never), own={2}), 6, replace(SIX[1], locations=("a", "b")))


def test_without_counting_instances_that_fell_a_bad_revision_becomes_active(monkeypatch: pytest.MonkeyPatch) -> None:
    right = failures.failures
    monkeypatch.setattr(
        failures, "failures", lambda stages, progress: right(stages, replace(progress, fell=frozenset()))
    )
    _breaks(is_caught, BAD["readiness comes and goes"], *SIX)


def test_a_roll_back_begins_at_once_since_the_old_revision_need_not_prove_itself_again() -> None:
    def back(*, trusted: bool) -> int:
        made = World(30, {OLD: good, NEW: never})
        order = Order(made, Policy()).begin()
        order.run()
        way = Order(made, Policy(), OLD).begin(frozenset())
        way.progress = replace(way.progress, proven=trusted, trusted=trusted)
        for host in made.hosts[6:]:
            host.wanted = NEW  # more was switched than is down
        way.run(120.0)
        return way.switched

    assert back(trusted=True) > back(trusted=False) == 0


def test_zero_failures_if_written_are_zero_and_the_default_is_one_from_five_instances_on() -> None:
    assert Policy(max_failures=Amount(0)).failures(100) == 0
    assert [Policy().failures(size) for size in (4, 5, 19, 20, 30)] == [0, 1, 1, 2, 3]


def test_dead_stages_are_switched_ones() -> None:
    assert set(failures._DEAD) <= SWITCHED
    assert Stage.GONE in failures._DEAD
