"""The clock of a simulation, and a line of jobs."""

from __future__ import annotations

from hq.sizing.simulator import EventQueue, ServingLine


def test_events_come_in_order_of_time_and_then_of_request() -> None:
    queue, order = EventQueue(), list[str]()
    for time_s, name in ((2.0, "c"), (1.0, "a"), (1.0, "b"), (9.0, "never")):
        queue.at(time_s, lambda name=name: order.append(name))  # type: ignore[misc]

    queue.run(until_s=5.0)

    assert order == ["a", "b", "c"]
    assert queue.now == 2.0


def test_an_event_may_not_happen_in_the_past() -> None:
    queue, times = EventQueue(), list[float]()
    queue.at(3.0, lambda: queue.at(1.0, lambda: times.append(queue.now)))

    queue.run(until_s=5.0)

    assert times == [3.0]


def test_a_job_waits_for_those_before_it() -> None:
    queue = EventQueue()
    line = ServingLine(queue, share=0.5)

    assert [line.add(1.0), line.add(1.0)] == [2.0, 4.0]
    assert (line.wait_s(), line.waiting) == (4.0, 2)
    queue.run(until_s=3.0)
    assert line.waiting == 1
    queue.run(until_s=5.0)
    assert (line.wait_s(), line.waiting, line.busy_s, line.longest_wait_s) == (0.0, 0, 2.0, 4.0)
