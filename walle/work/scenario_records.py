"""Scenarios in the store: with many hosts these are in records of their own, since one record has a bound.

The records of a scenario are written in one transaction, and a part that stays as it was is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from control.errors import Refused
from control.records import Records
from walle.texts import describe_absence
from walle.work.book import SCENARIO, SCENARIO_HOSTS, WalleTransaction
from wallepb.v1.project_pb2 import Scenario, ScenarioHosts

HOSTS_IN_RECORD: Final = 500


def read_scenario(book: WalleTransaction, name: str) -> Scenario | None:
    """A copy with all its hosts; None: there is none."""
    return _with_hosts(book.get(SCENARIO, name), lambda key: book.get(SCENARIO_HOSTS, key))


def stored_scenario(book: WalleTransaction, name: str) -> Scenario:
    """`read_scenario` of one that an order names. Raises Refused: there is none."""
    found = read_scenario(book, name)
    if found is None:
        raise Refused(describe_absence("scenario", name), "NOT_FOUND")
    return found


def put_scenario(book: WalleTransaction, scenario: Scenario) -> None:
    """Store a scenario, which must have been read before, and must have as many hosts as then."""
    if not scenario.host_records and len(scenario.host) <= HOSTS_IN_RECORD:
        book.put(SCENARIO, scenario.id, scenario)
        return
    head = Scenario()
    head.CopyFrom(scenario)
    head.ClearField("host")
    head.host_records = -(-len(scenario.host) // HOSTS_IN_RECORD)
    book.put(SCENARIO, head.id, head)
    for number, key in enumerate(_keys(head)):
        first = number * HOSTS_IN_RECORD
        book.get(SCENARIO_HOSTS, key)
        book.put(SCENARIO_HOSTS, key, ScenarioHosts(host=scenario.host[first : first + HOSTS_IN_RECORD]))


def delete_scenario(book: WalleTransaction, scenario: Scenario) -> None:
    """Delete a scenario with all its records; it must have been read before."""
    book.delete(SCENARIO, scenario.id)
    for key in _keys(scenario):
        book.delete(SCENARIO_HOSTS, key)


class Scenarios(Mapping[str, Scenario]):
    """All scenarios in memory, each with all its hosts. The messages are shared and must not be changed."""

    def __init__(self, heads: Records[Scenario], hosts: Records[ScenarioHosts]) -> None:
        self._heads, self._hosts = heads, hosts
        self._joined: dict[str, tuple[tuple[int, ...], Scenario]] = {}

    def __getitem__(self, name: str) -> Scenario:
        head = self._heads[name]
        if not head.host_records:
            return head
        versions = (self._heads.version(name), *(self._hosts.version(key) for key in _keys(head)))
        known = self._joined.get(name)
        if known is None or known[0] != versions:
            joined = _with_hosts(head, self._hosts.get)
            assert joined is not None
            known = self._joined[name] = versions, joined
        return known[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)


def _with_hosts(head: Scenario | None, part: Callable[[str], ScenarioHosts | None]) -> Scenario | None:
    if head is None or not head.host_records:
        return head
    whole = Scenario()
    whole.CopyFrom(head)
    for key in _keys(head):
        if (found := part(key)) is not None:
            whole.host.extend(found.host)
    return whole


def _keys(head: Scenario) -> Iterator[str]:
    return (f"{head.id}/{number}" for number in range(head.host_records))
