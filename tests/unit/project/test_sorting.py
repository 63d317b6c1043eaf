"""--sort-by over the tables of all programs: columns as they are shown, paths as in `-o jsonpath`."""

from __future__ import annotations

import pytest

from cmspb.v1.cms_pb2 import BudgetState
from hqcli.sorting import columns_of, sort_key
from hqkinds.cms import BUDGET
from nannyctl.output.services import SNAPSHOT_HEAD, snapshot_row
from nannypb.v1.service_pb2 import ListSnapshotsResponse
from wallectl.output import HOST_HEAD, host_row
from wallepb.v1.service_pb2 import ListHostsResponse


@pytest.mark.parametrize(
    ("by", "ids"), [("place", "cab"), ("PROJECT", "bca"), (".host.location.rack", "cab"), (".host.inventory", "abc")]
)
def test_rows_are_sorted_by_a_column_or_path_with_missing_values_last(by: str, ids: str) -> None:
    shown = ListHostsResponse()
    for name, project, rack in (("a", "web", "r2"), ("b", "db", ""), ("c", "mail", "r1")):
        shown.hosts.add(host={"name": name, "project": project, "location": {"rack": rack}})
    shown.hosts.sort(key=sort_key(by, columns_of(HOST_HEAD, host_row)))
    assert "".join(one.host.name for one in shown.hosts) == ids


def test_numbers_are_compared_as_numbers() -> None:
    shown = ListSnapshotsResponse(snapshot=[{"id": "x", "instances": 10}, {"id": "y", "instances": 9}])
    shown.snapshot.sort(key=sort_key("instances", columns_of(SNAPSHOT_HEAD, snapshot_row)))
    assert [one.id for one in shown.snapshot] == ["y", "x"]
    budgets = [BudgetState(name="a", available=2, floor=12), BudgetState(name="b", available=1, floor=2)]
    assert [one.name for one in sorted(budgets, key=sort_key("margin", BUDGET.values_by_column()))] == ["a", "b"]
