"""The same registry against the same model (test_stateful_registry.py), over real etcds in real time."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis.stateful import run_state_machine_as_test

from store.embedded import EmbeddedEtcd, EtcdBinary
from tests.guarantees.test_stateful_registry import Registries, tried
from tests.support.etcd import _run_apart
from tests.support.recorded_run_etcd import EtcdTheatre


class RegistriesOnEtcd(Registries):
    """Each under a prefix of its own. What only a store in memory can be made to do is left out."""

    endpoint = ""

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def new_play(self) -> EtcdTheatre:
        return EtcdTheatre(self.endpoint, f"/test-{secrets.token_hex(6)}/")

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


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "etcd_binary", ["3.4", *(pytest.param(each, marks=pytest.mark.long) for each in ("3.5", "3.6"))], indirect=True
)
def test_a_registry_on_etcd_does_what_its_model_does(compactable_etcd: EmbeddedEtcd) -> None:
    run_state_machine_as_test(new_machine(compactable_etcd), settings=tried(0.2))
