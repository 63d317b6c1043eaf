"""Files of hosts: what they say, and that every fault names its row and field."""

from __future__ import annotations

import pytest

from hqcli.documents import BadDocument
from wallectl.hostfile import MAX_ROWS, read_rows
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, HOST_STATE_FREE, Location, Machine

CSV = """name,project,inventory,bmc,address,dc,rack,switch,state
h1,web,100500,10.7.0.1,10.1.0.1 2001:db8::1,ams,r1,s1,free

"h2","web",,,,ams,r1,,
"""
JSON = """{"name": "h1", "project": "web", "inventory": 100500, "bmc": "10.7.0.1",\
 "address": ["10.1.0.1", "2001:db8::1"], "dc": "ams", "rack": "r1", "switch": "s1", "state": "free"}
{"name": "h2", "project": "web", "dc": "ams", "rack": "r1"}
"""


YAML = """# from the asset database
- name: h1
  project: web
  inventory: 100500
  bmc: 10.7.0.1
  address: [10.1.0.1, "2001:db8::1"]
  dc: ams
  rack: r1
  switch: s1
  state: free
- {name: h2, project: web, inventory: , dc: ams, rack: r1}
"""


@pytest.mark.parametrize("text", [CSV, JSON, YAML])
def test_csv_json_lines_and_yaml_say_the_same(text: str) -> None:
    first, second = read_rows(text)
    machine = first.machine(None)
    assert (machine.name, machine.inventory, machine.bmc) == ("h1", 100500, "10.7.0.1")
    assert (list(machine.address), list(machine.project)) == (["10.1.0.1", "2001:db8::1"], ["web"])
    assert machine.location == Location(dc="ams", rack="r1", switch="s1")
    assert first.order(ignore_cms=True).state == HOST_STATE_FREE
    assert second.machine(None).location.rack == "r1"
    assert second.order(ignore_cms=False).state == HOST_STATE_ASSIGNED


def test_fields_without_a_column_stay_as_they_are_and_empty_cells_clear_theirs() -> None:
    known = Machine(name="h1", inventory=7, bmc="10.7.0.1", project=["web*"], location=Location(rack="r1"))
    (row,) = read_rows("name,rack\nh1,r2", project="web-2")
    assert row.machine(known) == Machine(
        name="h1", inventory=7, bmc="10.7.0.1", project=["web*"], location=Location(rack="r2")
    )
    (row,) = read_rows("name,project,bmc,inventory\nh1,db,,")
    assert (row.machine(known).bmc, row.machine(known).inventory) == ("", 0)
    assert list(row.machine(known).project) == ["web*", "db"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("name,color\nh1,red", "row 1: 'color' is not a column: write name, project"),
        ("name,name\nh1,h1", "row 1: a column is named twice"),
        ("project\nweb", "row 2: name: is needed"),
        ("name\nh1", "row 2: project: is needed, here or with --project"),
        ("name,project\nh1,web\n\nh1,web", "row 4: name: h1 is in row 2, too"),
        ("name,project,bmc\nh1,web,b\nh2,web,b", "row 3: bmc: b is in row 2, too"),
        ("name,project,address\nh1,web,a b\nh2,web,b", "row 3: address: b is in row 2, too"),
        ("name,project\nh1,web,x", "row 2: 3 cells, the first row has 2"),
        ("name,project\nh1", "row 2: 1 cells, the first row has 2"),
        ('name,project\n"h1,web', "row 2: unexpected end of data"),
        ("name,project,inventory\nh1,web,x1", "row 2: inventory: 'x1' is not an inventory number"),
        ("name,project,inventory\nh1,web,99999999999999999999", "row 2: inventory: "),
        ("name,project,state\nh1,web,dead", "row 2: state: 'dead': write assigned or free"),
        ('{"name": "h1", "project": "web"}\n{"name": ', "row 2: Expecting value"),
        ('{"name": "h1", "project": "web"}\n[]', "row 2: write an object in each line"),
        ('{"name": "h1", "project": "web", "rack": {}}', "row 1: rack: write a text or a number"),
        ('{"name": "h1", "project": "web", "color": 1}', "row 1: 'color' is not a column"),
        ("- name: h1\n  project: web\n- name: h1\n  project: web", "row 2: name: h1 is in row 1, too"),
        ("- h1\n", "row 1: write names and values"),
        ("- {name: h1, project: web, color: red}", "row 1: 'color' is not a column"),
        ("- {name: h1, project: web, rack: [a]}", "row 1: rack: write a text or a number"),
        ("- {name: h1, project: web, rack: true}", "row 1: rack: write a text or a number"),
        ("- {name: h1", "line 2, column 1: "),
        ("name,project\n" + "\n".join(f"h{n},web" for n in range(MAX_ROWS + 1)), f"row {MAX_ROWS + 2}: more than"),
    ],
)
def test_a_fault_names_its_row_and_field(text: str, fault: str) -> None:
    with pytest.raises(BadDocument) as raised:
        all_of(text)
    assert str(raised.value).startswith(fault)


def all_of(text: str) -> list[object]:
    return [(row.machine(None), row.order(ignore_cms=False)) for row in read_rows(text)]
