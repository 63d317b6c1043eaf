"""The same registry against the same model (test_stateful_registry.py), over real etcds in real time."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import seed
from hypothesis.stateful import invariant, run_state_machine_as_test

from store.embedded import EmbeddedEtcd, EtcdBinary
from tests.guarantees.test_stateful_registry import Registries, bounded
from tests.support.etcd import _run_apart
from tests.support.recorded_run_etcd import EtcdTheatre


class RegistriesOnEtcd(Registries):
    """Each under a prefix of its own. What only a store in memory can be made to do is left out."""

    endpoint = ""
    examples = steps = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).examples += 1

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def new_play(self) -> EtcdTheatre:
        return EtcdTheatre(self.endpoint, f"/test-{secrets.token_hex(6)}/")

    @invariant()
    def count(self) -> None:
        type(self).steps += 1

    restore = the_next_answer_is_lost = connections_break = everybody_falls_silent = None  # type: ignore[assignment]


@pytest.fixture
def compactable_etcd(etcd_binary: EtcdBinary, tmp_path: Path) -> Iterator[EmbeddedEtcd]:
    """One of its own, outside of any loop."""
    etcd = EmbeddedEtcd(tmp_path, binary=etcd_binary)
    _run_apart(etcd.start)
    yield etcd
    _run_apart(etcd.stop)


def new_machine(etcd: EmbeddedEtcd) -> type[RegistriesOnEtcd]:
    return type("Machine", (RegistriesOnEtcd,), {"endpoint": etcd.endpoint})


@pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)
def test_a_registry_on_etcd_does_what_its_model_does(compactable_etcd: EmbeddedEtcd) -> None:
    run_state_machine_as_test(new_machine(compactable_etcd), settings=bounded(5))


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("etcd_binary", ["3.4", "3.5"], indirect=True)
@pytest.mark.parametrize("part", range(5))
def test_a_registry_on_etcd_does_what_its_model_does_in_five_hundred_histories(
    compactable_etcd: EmbeddedEtcd, part: int
) -> None:
    """In parts of a hundred, so that one can see how far it is; `-s` shows the figures."""
    machine, began = new_machine(compactable_etcd), time.monotonic()
    run_state_machine_as_test(seed(part)(machine), settings=bounded(100))
    took_s = time.monotonic() - began
    print(f"\nseed {part}: {machine.examples} histories, {machine.steps} steps, {took_s:.0f} s")
