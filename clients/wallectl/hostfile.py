"""Files of hosts for `walle hosts import`: CSV, JSON lines, or YAML. Every error names the row and the field. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from hqcli.documents import BadDocument, value_of
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, HOST_STATE_FREE, HostState, Machine
from wallepb.v1.service_pb2 import AddHostRequest

COLUMNS: Final = ("name", "project", "state", "inventory", "bmc", "address", "dc", "rack", "switch")
MAX_ROWS: Final = 20_000
_MAX_NUMBER: Final = 2**64
_STATES: Final[Mapping[str, HostState]] = {
    "": HOST_STATE_ASSIGNED,
    "assigned": HOST_STATE_ASSIGNED,
    "free": HOST_STATE_FREE,
}


@dataclass(frozen=True, slots=True)
class HostRow:
    """One row.

    Attributes:
        number: of its line in the file, in YAML of its item in the list; the first is 1.
        values: by column; what is absent stays as it is.
    """

    number: int
    values: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.values["name"]

    def machine(self, known: Machine | None) -> Machine:
        """The machine with what the row says of it; the row's project may add it. Raises BadDocument."""
        made = Machine(name=self.name)
        if known is not None:
            made.CopyFrom(known)
        if "inventory" in self.values:
            made.inventory = self._inventory()
        if "bmc" in self.values:
            made.bmc = self.values["bmc"]
        if "address" in self.values:
            del made.address[:]
            made.address.extend(self.values["address"].split())
        for field in ("dc", "rack", "switch"):
            if field in self.values:
                setattr(made.location, field, self.values[field])
        project = self.values["project"]
        if not any(fnmatchcase(project, pattern) for pattern in made.project):
            made.project.append(project)
        return made

    def order(self, *, ignore_cms: bool) -> AddHostRequest:
        """Raises BadDocument."""
        state = self.values.get("state", "")
        if state not in _STATES:
            raise self.fault("state", f"{state!r}: write assigned or free")
        return AddHostRequest(
            host=self.name, project=self.values["project"], state=_STATES[state], ignore_cms=ignore_cms
        )

    def fault(self, field: str, why: str) -> BadDocument:
        return BadDocument(f"row {self.number}: {field}: {why}")

    def _inventory(self) -> int:
        text = self.values["inventory"]
        if not text:
            return 0
        if not (text.isascii() and text.isdigit() and int(text) < _MAX_NUMBER):
            raise self.fault("inventory", f"{text[:40]!r} is not an inventory number")
        return int(text)


def read_rows(text: str, *, project: str = "") -> list[HostRow]:
    """The rows of a text: CSV begins with the names of its columns, JSON lines with `{`, YAML with `- `.

    `project`: of rows that name none. Raises BadDocument.
    """
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith(("#", "---"))), "").strip()
    read = _json_rows if first.startswith("{") else _yaml_rows if first.startswith("- ") else _csv_rows
    rows: list[HostRow] = []
    seen: dict[tuple[str, str], int] = {}
    for number, values in read(text):
        if len(rows) == MAX_ROWS:
            raise BadDocument(f"row {number}: more than {MAX_ROWS} rows: import them in several files")
        row = HostRow(
            number, {"project": project} | {name: value for name, value in values.items() if name != "project" or value}
        )
        for field in ("name", "project"):
            if not row.values.get(field):
                raise row.fault(field, "is needed" + (", here or with --project" if field == "project" else ""))
        for field, value in _unique_values(row.values):
            if seen.setdefault((field, value), number) != number:
                raise row.fault(field, f"{value} is in row {seen[field, value]}, too")
        rows.append(row)
    return rows


def _unique_values(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the values that no two rows may share. The server knows what other machines have."""
    for field in ("name", "inventory", "bmc"):
        if values.get(field):
            yield field, values[field]
    for address in dict.fromkeys(values.get("address", "").split()):
        yield "address", address


def _csv_rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        head = [name.strip().lower() for name in next(reader, [])]
        _check_columns(1, head)
        if len(set(head)) < len(head):
            raise BadDocument("row 1: a column is named twice")
        for cells in reader:
            if len(cells) > len(head) or (len(cells) < len(head) and cells):
                raise BadDocument(f"row {reader.line_num}: {len(cells)} cells, the first row has {len(head)}")
            if any(cell.strip() for cell in cells):
                yield reader.line_num, dict(zip(head, (cell.strip() for cell in cells), strict=True))
    except csv.Error as error:
        raise BadDocument(f"row {reader.line_num}: {error}") from None


def _json_rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            given: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadDocument(f"row {number}: {error}") from None
        if not isinstance(given, dict):
            raise BadDocument(f"row {number}: write an object in each line")
        yield number, _values(number, given)


def _yaml_rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    given = value_of(text)
    if not isinstance(given, list):
        raise BadDocument("write a list of hosts")
    for number, one in enumerate(given, 1):
        if not isinstance(one, dict):
            raise BadDocument(f"row {number}: write names and values, as `name: prod-1`")
        yield number, _values(number, {str(name): "" if value is None else value for name, value in one.items()})


def _values(number: int, given: Mapping[str, object]) -> dict[str, str]:
    _check_columns(number, given)
    return {name: _text(number, name, value) for name, value in given.items()}


def _text(number: int, name: str, value: object) -> str:
    """A list of addresses is written as in CSV."""
    if name == "address" and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadDocument(f"row {number}: {name}: write a text or a number")
    return str(value)


def _check_columns(number: int, names: Any) -> None:
    for name in names:
        if name not in COLUMNS:
            raise BadDocument(f"row {number}: {name[:40]!r} is not a column: write {', '.join(COLUMNS)}")
