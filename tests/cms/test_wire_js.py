"""A client in another language, written by hand from the description of the API, against ours."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.cms.cloud import service_of

CLIENT = Path(__file__).parent / "js" / "client.mjs"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="needs node (Debian: apt-get install nodejs)")
async def test_a_client_in_javascript_gets_what_the_description_promises() -> None:
    async with service_of(3) as (_, cms):
        process = await asyncio.create_subprocess_exec(
            *("node", str(CLIENT), f"http://127.0.0.1:{cms.port}/v1.4", "h0"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        told, error = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, error.decode()
        steps = {step.pop("step"): step for step in map(json.loads, told.decode().splitlines())}
        assert steps == {
            "dry": {"status": "ok"},
            "asked": {"status": "ok"},
            "listed": {"found": 1},
            "conflict": {"status": 409, "words": "string"},
            "deleted": {"status": 204, "after": 404},
        }
