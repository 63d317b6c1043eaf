"""Some seconds of fuzzing in every run of the tests; `make fuzz` takes its time."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.fuzz import requests, words
from tests.fuzz.campaign import Campaign
from tests.fuzz.target import FLAGS, faults_in, started

SEED = int(os.environ.get("HQ_FUZZ_SEED", "20261121"))
SECONDS = 6.0


@pytest.mark.long
async def test_whatever_comes_in_gets_a_designed_answer(tmp_path: Path) -> None:
    async with started(tmp_path, "--store", "memory", *FLAGS) as target:
        report = await Campaign(target.grpc, target.http, SEED).run(SECONDS)
        assert target.is_alive()
        faults = report.faults + faults_in(target.log_text())
    assert not faults, f"seed {SEED}:\n" + "\n".join(faults)
    assert report.outcomes["http", "200"] > 0, "nothing got through: the fuzzer looks at the door only"
    assert report.outcomes["grpc", "ok"] > 0
    assert report.outcomes["http", "400"] > 0
    assert report.outcomes["grpc", "invalid_argument"] > 0


def test_every_call_is_attacked_and_the_same_seed_makes_the_same_attacks() -> None:
    def made(seed: int) -> list[bytes]:
        rng, known = random.Random(seed), requests.Known()
        return [requests.as_json(rng, requests.message(rng, method, known)) for method in requests.METHODS]

    assert made(1) == made(1) != made(2)
    assert len(requests.METHODS) == sum(len(service.methods) for service in requests.SERVICES)


def test_forged_tokens_are_made_from_real_ones() -> None:
    rng = random.Random(1)
    forged = {words.token(rng, "WyJhIiwiYiIsM10") for _ in range(200)}
    assert len(forged) > 50
