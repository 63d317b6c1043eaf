"""The order of need keeps its promises, and none of its rules can be left out: scenarios, then random search."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from tests.cms.need_model import (
    PLANNED,
    REPAIR,
    ROLLOUT,
    RULES,
    URGENT,
    Model,
    PromiseBroken,
    Service,
    Unit,
    stream,
)

Rules = frozenset[str]
_H: Final = 3600.0


def _one(total: int = 10, floor: int = 8, brief_floor: int = 5) -> dict[str, Service]:
    return {"web": Service(total, floor, brief_floor)}


def repairs_all_day(rules: Rules) -> None:
    """Five per cent more repairs than the floor lets through, for six hours; planned work of two comes every
    twenty minutes."""
    rng, repairs, at = random.Random(1), list[Unit](), 0.0
    while (at := at + rng.expovariate(1.05 * 2 / 610)) < 6 * _H:
        repairs.append(Unit(f"repair-{len(repairs)}", REPAIR, {"web": 1}, at))
    planned = list(stream(Unit("planned", PLANNED, {"web": 2}, 600, confirm_s=40), 1200, 6 * _H))
    Model(_one(), repairs + planned, rules).run(6 * _H)
    done = sum(unit.state in ("granted", "done") for unit in planned[:6])
    if done < 5:
        raise PromiseBroken(f"{done} of the first 6 planned units were granted in 6 h")


def repairs_go_first(rules: Rules) -> None:
    """Planned work waits in a long row; a repair waits for what is under work, and for nothing else."""
    planned = [Unit(f"planned-{n}", PLANNED, {"web": 2}, 10 + n) for n in range(8)]
    repair, roll_back = Unit("repair", REPAIR, {"web": 1}, 700), Unit("roll-back", URGENT, {"web": 1}, 700)
    roll_out = Unit("roll-out", ROLLOUT, {"web": 1}, 700)
    model = Model(_one(), [*planned, repair, roll_back, roll_out], rules).run(2 * _H)
    for unit, within_s in ((repair, 700), (roll_back, 700), (roll_out, 1300)):
        model.expect(unit, within_s)


def a_repair_that_nobody_confirms(rules: Rules) -> None:
    """It lapses, comes back, lapses: planned work that takes its time is granted all the same."""
    repair = Unit("repair", REPAIR, {"web": 2}, 60, confirm_s=None)
    planned = Unit("planned", PLANNED, {"web": 2}, 10, confirm_s=100)
    Model(_one(), [repair, planned], rules).run(4 * _H).expect(planned, 2 * _H)


def a_repair_that_does_not_fit_anyway(rules: Rules) -> None:
    """Others hold what it needs: provisional oks are no help to it, and stay."""
    held = Unit("held", PLANNED, {"web": 1}, 0, work_s=1e9)
    repair = Unit("repair", REPAIR, {"web": 2}, 60)
    planned = list(stream(Unit("planned", PLANNED, {"web": 1}, 20, confirm_s=100, work_s=60), 300, 4 * _H))
    services = {"web": Service(10, 8, 8, down=0)}

    def breaks(model: Model) -> None:
        model.services["web"].floor = 8

    model = Model(services, [held, repair, *planned], rules).run(4 * _H, breaks)
    if model.events["withdraw"]:
        raise PromiseBroken(f"{model.events['withdraw']} oks were taken back for nothing")


def a_group_is_taken_back_as_one(rules: Rules) -> None:
    group = [Unit(f"g-{n}", PLANNED, {"web": 1}, 10, confirm_s=100, group="g") for n in range(2)]
    repair = Unit("repair", REPAIR, {"web": 1}, 60)
    model = Model(_one(), [*group, repair], rules).run(_H)
    model.expect(repair, 60)
    model.expect(group[0], _H)


def brief_work_all_day(rules: Rules) -> None:
    """Brief work goes on and on below the ordinary floor: an ordinary reboot still gets its turn."""
    brief = list(stream(Unit("brief", PLANNED, {"web": 1}, 10, is_brief=True, work_s=900), 200, 5 * _H))
    ordinary = Unit("ordinary", PLANNED, {"web": 1}, 1800)
    model = Model(_one(), [*brief, ordinary], rules).run(6 * _H)
    model.expect(ordinary, 1200)
    if sum(unit.state == "done" for unit in brief) < 60:
        raise PromiseBroken("brief work has no use of its allowance")


def brief_work_that_does_not_end(rules: Rules) -> None:
    """A brief hold past its bound: the ordinary floor is kept until it ends."""
    late = Unit("late", PLANNED, {"web": 1}, 10, is_brief=True, work_s=3 * _H)
    later = [Unit(f"brief-{n}", PLANNED, {"web": 1}, 2 * _H, is_brief=True, work_s=300) for n in range(4)]

    def look(model: Model) -> None:
        others = sum(unit.state in ("offered", "granted") for unit in later)
        if late.state == "granted" and model.now - late.since > _H + 60 and others > 1:
            raise PromiseBroken("brief work goes below the ordinary floor beside a hold past its bound")

    model = Model(_one(), [late, *later], rules).run(5 * _H, look)
    for unit in later:
        model.expect(unit, 2 * _H)


def a_window_that_is_closed(rules: Rules) -> None:
    """Who waits for the night stands in nobody's way; an ok of the last minute ends with the window."""
    night = (24 * 3600, 20 * 3600, 21 * 3600)
    waits = [Unit(f"night-{n}", PLANNED, {"web": 2}, 10, confirm_s=50, window=night) for n in range(2)]
    late = Unit("late", PLANNED, {"web": 2}, 21 * _H - 20, confirm_s=60, window=night)
    day = Unit("day", PLANNED, {"web": 1}, 20)
    model = Model(_one(), [*waits, late, day], rules).run(46 * _H)
    model.expect(day, 60)
    for unit in waits:
        model.expect(unit, 21 * _H)
    model.expect(late, 24 * _H)


def a_client_that_asks_again(rules: Rules) -> None:
    """It deletes its task every half hour and asks for the same hosts anew: it has waited since the first time."""
    repairs = list(stream(Unit("repair", REPAIR, {"web": 1}, 0, work_s=600), 290, 6 * _H))
    planned = Unit("planned", PLANNED, {"web": 2}, 100, again_s=1800)
    Model(_one(), [*repairs, planned], rules).run(6 * _H).expect(planned, 2 * _H)


def a_turn_that_leads_to_nothing(rules: Rules) -> None:
    """An old unit needs two, one is held for a day: repairs of one wait ten minutes at most."""
    held = Unit("held", PLANNED, {"web": 1}, 0, work_s=24 * _H)
    old = Unit("old", PLANNED, {"web": 2}, 60)
    repairs = list(stream(Unit("repair", REPAIR, {"web": 1}, 3 * _H, work_s=120), 1800, 8 * _H))
    model = Model(_one(), [held, old, *repairs], rules).run(9 * _H)
    for unit in repairs:
        model.expect(unit, 700)


def a_large_one_among_small_ones(rules: Rules) -> None:
    """Small planned work comes all the time; what needs two at once gets them."""
    small = list(stream(Unit("small", PLANNED, {"web": 1}, 0, work_s=600), 300, 3 * _H))
    large = Unit("large", PLANNED, {"web": 2}, 400)
    Model(_one(), [*small, large], rules).run(3 * _H).expect(large, 1500)


SCENARIOS: Final[tuple[Callable[[Rules], None], ...]] = (
    repairs_go_first,
    a_repair_that_nobody_confirms,
    a_repair_that_does_not_fit_anyway,
    a_group_is_taken_back_as_one,
    brief_work_all_day,
    brief_work_that_does_not_end,
    a_window_that_is_closed,
    a_client_that_asks_again,
    a_turn_that_leads_to_nothing,
    a_large_one_among_small_ones,
    repairs_all_day,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_the_rules_keep_every_promise(scenario: Callable[[Rules], None]) -> None:
    scenario(RULES)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_left_out_breaks_a_promise(rule: str) -> None:
    for scenario in SCENARIOS:
        try:
            scenario(RULES - {rule})
        except PromiseBroken:
            return
    pytest.fail(f"nothing breaks without: {rule}")


def random_model(seed: int, rules: Rules = RULES) -> Model:
    """Two services, twenty units of every kind, in groups and windows, over four hours; then ten hours of calm."""
    rng = random.Random(seed)
    services = {name: Service(rng.randint(4, 12), 0, 0) for name in ("web", "db")}
    for service in services.values():
        service.floor = service.total - rng.randint(2, 3)
        service.brief_floor = rng.randint(service.floor // 2, service.floor)
    units = []
    for number in range(20):
        group = rng.choice(("", "", "", "g", "h"))
        need = PLANNED if group else rng.choice((REPAIR, URGENT, ROLLOUT, PLANNED, PLANNED))
        takes = {name: 1 for name in services if rng.random() < 0.7} or {"web": 1}
        units.append(
            Unit(
                f"u{number}",
                need,
                takes,
                asked_at=3600.0 * "gh".find(group) if group else rng.uniform(0, 4 * _H),
                work_s=rng.choice((60.0, 600.0, 1800.0)),
                confirm_s=rng.choice((10.0, 60.0, 110.0)),
                is_brief=rng.random() < 0.3,
                group=group,
                again_s=None if group else rng.choice((None, None, 1200.0)),
                window=rng.choice((None, None, (7200, 0, 3600))) if not group and need > URGENT else None,
            )
        )
    sizes = {group: [unit for unit in units if unit.group == group][2:] for group in ("g", "h")}
    crowd = [unit for rest in sizes.values() for unit in rest]
    return Model(services, [replace(u, group="") if u in crowd else u for u in units], rules)


def trouble_of(rng: random.Random) -> Callable[[Model], None]:
    """Instances fail and recover for four hours."""

    def trouble(model: Model) -> None:
        for name, service in model.services.items():
            if model.now >= 4 * _H:
                service.down = 0
            elif rng.random() < 0.02:
                under_work = sum(unit.takes.get(name, 0) for unit in model.live if unit.state == "granted")
                service.down = min(rng.choice((0, 0, 1, 2)), service.total - under_work)  # no instance is gone twice

    return trouble


@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(range(10, 1000), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_whatever_is_asked_is_granted_above_the_floors(seeds: range) -> None:
    for seed in seeds:
        model = random_model(seed)
        try:
            model.run(14 * _H, trouble_of(random.Random(seed)))
        except PromiseBroken as error:
            pytest.fail(f"seed {seed}: {error}")
        left = [unit for unit in model.units if unit.state not in ("granted", "done")]
        assert not left, f"seed {seed}: {left}"
