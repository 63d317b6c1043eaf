"""Messages of many supervisors in one call: each is sent once, unchanged, and answered when HQ has answered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from hqpb.v1 import service_pb2 as pb
from instancectl.hostagent.gathering import Gathering, Key, Placed, ReportRhythm
from instancectl.hostagent.upstream import UpstreamError
from instancectl.reports.schedule import Schedule
from serving.clock import ManualClock
from serving.errors import OutcomeUnknown, ServiceError
from serving.transport.client_call import CallFailed
from tests.support.sample_instances import eventually
from tests.support.virtual_time import VirtualClock, in_virtual_time

UNKNOWN_FIELD = b"\xfa\x3e\x03new"  # field 1007, of an agent that is newer than we are


class Hq:
    """Answers with the names it was sent, once `may_answer` is set."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.bodies: list[bytes] = []
        self.deadlines: list[float] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failure: CallFailed | None = None

    async def send(self, request: bytes, deadline: float) -> bytes:
        self.bodies.append(request)
        self.deadlines.append(deadline)
        names = [report.instance_id for report in pb.ReportStatusesRequest.FromString(request).report]
        self.calls.append(names)
        await self.may_answer.wait()
        if self.failure is not None:
            raise UpstreamError(self.failure, "hq:7071")
        return ",".join(names).encode()


def read(body: bytes) -> Sequence[Any]:
    return body.decode().split(",")


def gathering(hq: Hq) -> Gathering:
    return Gathering(hq.send, read, ManualClock(), 0.01)


def report(name: str) -> bytes:
    return pb.ReportStatusRequest(instance_id=name).SerializeToString()


def add(to: Gathering, name: str, key: Key | None = None, deadline: float = 9.0) -> asyncio.Task[Placed]:
    return asyncio.create_task(to.add(key or (name, "r1"), report(name), deadline))


async def test_messages_that_come_together_are_one_call_with_a_result_for_each() -> None:
    hq = Hq()
    to = gathering(hq)
    placed = await asyncio.gather(*(add(to, name, deadline=n) for n, name in enumerate(("a", "b", "c"))))
    assert hq.calls == [["a", "b", "c"]]
    assert placed == [("a", 0), ("b", 1), ("c", 2)]
    assert hq.deadlines == [2], "as long as the most patient of them waits"


@in_virtual_time
async def test_a_call_waits_for_more_messages_but_not_for_ever() -> None:
    hq = Hq()
    to = Gathering(hq.send, read, ManualClock(), 0.1)
    alone = add(to, "alone")
    await asyncio.sleep(0.11)
    assert hq.calls == [["alone"]], "nobody waits for who does not come"
    tasks = []
    for number in range(20):  # a busy machine hands them over one by one
        tasks.append(add(to, f"i-{number}"))
        await asyncio.sleep(0.08)
    assert [len(call) for call in hq.calls[1:]] == [13], "more come all the while: a second at most"
    await asyncio.gather(alone, *tasks)


async def test_a_message_is_passed_on_with_its_unknown_fields() -> None:
    hq = Hq()
    raw = report("a") + UNKNOWN_FIELD
    await gathering(hq).add(("a", "r1"), raw, 9.0)
    assert raw in hq.bodies[0]


async def test_messages_of_one_revision_go_one_by_one_and_are_never_merged() -> None:
    hq = Hq()
    to = gathering(hq)
    hq.may_answer.clear()
    same = ("i", "r1")
    tasks = [add(to, "first", same), add(to, "second", same), add(to, "other")]
    await eventually(lambda: hq.calls)
    later = add(to, "later")
    await eventually(lambda: len(hq.calls) == 2)
    assert hq.calls == [["first", "other"], ["later"]], "others do not wait for it"
    hq.may_answer.set()
    await asyncio.gather(*tasks, later)
    assert hq.calls[2:] == [["second"]]


async def test_the_message_of_a_caller_that_is_gone_is_not_sent() -> None:
    hq = Hq()
    to = gathering(hq)
    gone, stays = add(to, "gone"), add(to, "stays")
    await asyncio.sleep(0)
    gone.cancel()
    await stays
    assert hq.calls == [["stays"]]
    await add(to, "back", ("gone", "r1"))
    assert hq.calls[1:] == [["back"]]


async def test_a_sent_message_is_not_overtaken_though_its_caller_is_gone() -> None:
    hq = Hq()
    to = gathering(hq)
    hq.may_answer.clear()
    gone = add(to, "gone", ("i", "r1"))
    await eventually(lambda: hq.calls)
    gone.cancel()
    after = add(to, "after", ("i", "r1"))
    other = add(to, "other")
    await eventually(lambda: len(hq.calls) == 2)
    assert hq.calls == [["gone"], ["other"]]
    hq.may_answer.set()
    await asyncio.gather(after, other)
    assert hq.calls[2:] == [["after"]]


async def test_a_failed_call_fails_each_message_and_is_not_repeated() -> None:
    hq = Hq()
    hq.failure = CallFailed(14, "the connection was closed")
    to = gathering(hq)
    outcomes = await asyncio.gather(add(to, "a"), add(to, "b"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown, OutcomeUnknown]
    assert outcomes[0] is not outcomes[1], "each has a request id of its own"
    assert hq.calls == [["a", "b"]]


async def test_an_answer_with_too_few_results_leaves_the_outcome_unknown() -> None:
    to = Gathering(Hq().send, lambda _: ["one"], ManualClock(), 0.0)
    outcomes = await asyncio.gather(add(to, "a"), add(to, "b"), return_exceptions=True)
    assert any(isinstance(outcome, OutcomeUnknown) for outcome in outcomes)


async def test_more_messages_than_fit_into_a_call_are_several_calls() -> None:
    hq = Hq()
    to = gathering(hq)
    await asyncio.gather(*(add(to, f"i-{n}") for n in range(1_001)))
    assert [len(names) for names in hq.calls] == [1_000, 1]


async def test_draining_sends_waiting_messages_and_returns_when_they_are_answered() -> None:
    hq = Hq()
    to = Gathering(hq.send, read, ManualClock(), 3_600.0)
    waiting = add(to, "a")
    await asyncio.sleep(0)
    await to.drain()
    assert (await waiting).result == "a"


@pytest.mark.parametrize(("unprocessed", "reason"), [(True, "UNAVAILABLE"), (False, "OUTCOME_UNKNOWN")])
async def test_a_failure_says_whether_the_message_may_have_been_stored(unprocessed: bool, reason: str) -> None:
    hq = Hq()
    hq.failure = CallFailed(14, "no", is_unprocessed=unprocessed)
    with pytest.raises(ServiceError) as caught:
        await add(gathering(hq), "a")
    assert caught.value.reason == reason


@pytest.mark.parametrize("handing_over_s", [0.0, 0.003], ids=["quiet", "busy"])
@in_virtual_time
async def test_two_hundred_quiet_supervisors_make_one_call_in_an_interval(handing_over_s: float) -> None:
    """They begin one after the other; HQ asks for the next report up to a tenth sooner than once in an interval."""
    hq, rng, clock, interval_s = Hq(), random.Random(1), VirtualClock(), 180.0
    rhythm, machine = ReportRhythm(clock), asyncio.Lock()

    def read_with_hints(body: bytes) -> Sequence[Any]:
        hint_s = interval_s * rng.uniform(0.9, 1.0)
        return [rhythm.next_s(hint_s) for _ in read(body)]

    to = Gathering(hq.send, read_with_hints, clock, 0.1)

    async def supervise(name: str) -> None:
        await asyncio.sleep(60 * rng.random())
        schedule = Schedule(interval_s, rng)
        while True:
            await asyncio.sleep(schedule.due_in_s(clock.now()))
            async with machine:  # it has one processor
                await asyncio.sleep(handing_over_s)
            schedule.begin_report(clock.now())
            placed = await to.add((name, "r1"), report(name), clock.now() + 10)
            schedule.record_acceptance(clock.now(), placed.result)

    tasks = [asyncio.create_task(supervise(f"i-{number}")) for number in range(200)]
    await asyncio.sleep(3 * interval_s)
    begun = len(hq.calls)
    await asyncio.sleep(20 * interval_s)
    quiet = hq.calls[begun:]
    for task in tasks:
        task.cancel()
    assert {len(call) for call in quiet} == {200}
    assert 20 <= len(quiet) <= 23, "20 intervals, up to a tenth shorter"
