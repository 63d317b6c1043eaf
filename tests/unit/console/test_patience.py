"""A page waits once for a server that hangs; later calls fail at once until the server answers."""

from __future__ import annotations

import asyncio

import pytest

from console.backends.asking import CLUSTER, SignInNeeded, Trouble, metadata
from console.backends.patience import Patience
from hqclient.errors import HqApiError
from tests.support.sample_instances import eventually


def _patience(wait_s: float = 0.05) -> Patience:
    return Patience("Nanny", wait_s, wall_s=lambda: 3_600.0)


async def _answer() -> str:
    return "here"


async def test_an_answer_in_time_is_the_answer() -> None:
    assert await _patience().run_call(_answer) == "here"


async def test_a_late_answer_is_given_up_and_later_calls_fail_at_once() -> None:
    patience, gate, asked = _patience(), asyncio.Event(), 0

    async def late() -> str:
        nonlocal asked
        asked += 1
        await gate.wait()
        return "late"

    first = await patience.run_call(late)
    assert isinstance(first, Trouble)
    assert (first.kind, first.text) == ("away", "Nanny has not answered since 01:00:00 UTC")
    assert await patience.run_call(late) == first
    assert asked == 1
    gate.set()
    await eventually(lambda: not patience._under_way)
    assert await patience.run_call(_answer) == "here"


async def test_a_call_with_a_long_deadline_does_not_mark_its_server_as_away() -> None:
    patience, gate = _patience(), asyncio.Event()
    slow = asyncio.create_task(patience.run_call(gate.wait, 5.0))
    await asyncio.sleep(0.1)
    assert await patience.run_call(_answer) == "here"
    gate.set()
    assert await slow is True


async def test_a_server_that_answers_others_does_not_hang() -> None:
    """One person's late call must not tell others that the server is away."""
    patience, gate = _patience(), asyncio.Event()
    late = asyncio.create_task(patience.run_call(gate.wait))
    await asyncio.sleep(0.01)
    assert await patience.run_call(_answer) == "here"
    assert isinstance(await late, Trouble)
    assert await patience.run_call(_answer) == "here"
    gate.set()


async def test_the_need_to_sign_in_is_passed_on() -> None:
    async def refuse() -> str:
        raise SignInNeeded("sign in")

    with pytest.raises(SignInNeeded):
        await _patience().run_call(refuse)


@pytest.mark.parametrize("cluster", ["\0", "ams\u202e", "ams\r\nx-other: 1"])
def test_a_location_whose_name_fits_in_no_header_does_not_exist(cluster: str) -> None:
    """Its name comes from the page's address."""
    was = CLUSTER.set(cluster)
    try:
        with pytest.raises(HqApiError, match="there is no location"):
            metadata()
    finally:
        CLUSTER.reset(was)
