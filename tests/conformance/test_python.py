"""Python's clients do what the suite asks of every client, and the suite notices a client that does not."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conformance.__main__ import play_one
from tests.conformance.client_process import ClientProcess
from tests.conformance.scenarios import Scenario, read_scenarios

SCENARIOS = read_scenarios()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def python_async() -> AsyncIterator[ClientProcess]:
    client = ClientProcess([sys.executable, "-m", "tests.conformance.python_async"])
    yield client
    await client.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_the_asyncio_client_passes_the_suite(scenario: Scenario, python_async: ClientProcess) -> None:
    assert not await play_one(python_async, scenario)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def python_sync() -> AsyncIterator[ClientProcess]:
    client = ClientProcess([sys.executable, "-m", "tests.conformance.python_sync"])
    yield client
    await client.close()


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_the_synchronous_client_passes_the_suite(scenario: Scenario, python_sync: ClientProcess) -> None:
    assert not await play_one(python_sync, scenario)


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_a_client_with_a_flaw_fails_the_suite(scenario: Scenario) -> None:
    client = ClientProcess([sys.executable, "-m", "tests.conformance.python_async", scenario.flaw])
    problem = await play_one(client, scenario, within_s=1.5)
    assert problem, f"nobody noticed the flaw {scenario.flaw}"
    assert problem.startswith("at ") or scenario.flaw == "fails_on_damaged_files", problem  # not for a broken flaw
    await client.kill()
