"""One kind of objects: what it is called, who lists it, and the columns of its table. Knows messages only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        head: in capitals.
        cell: what it says of an item; empty: there is nothing to say, shown as `-`.
        is_wide: shown only if more is asked for.
    """

    head: str
    cell: Callable[[Any], str]
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """How clients list and show one kind.

    Attributes:
        name, plural: as people write it.
        controller: whose it is: "cms" or "walle".
        request: asks for all objects; the call has its name, without "Request".
        items: the objects in an answer.
        columns: of its table; the first is the name of an item.
    """

    name: str
    plural: str
    controller: str
    request: type[Message]
    items: Callable[[Any], Sequence[Any]]
    columns: tuple[Column, ...]

    @property
    def method(self) -> str:
        """The call that lists them."""
        return self.request.DESCRIPTOR.name.removesuffix("Request")

    def name_of(self, item: Any) -> str:
        """The name by which people ask for the item."""
        return self.columns[0].cell(item)

    def heads(self, *, wide: bool = False) -> list[str]:
        """Headings of the columns."""
        return [column.head for column in self._visible_columns(wide)]

    def rows(self, items: Sequence[Any], *, wide: bool = False) -> list[list[str]]:
        """Cells under `heads`, none of them empty."""
        return [[column.cell(item) or "-" for column in self._visible_columns(wide)] for item in items]

    def values_by_column(self) -> dict[str, Callable[[Any], str]]:
        """Return the functions of the columns, by their heads in lower case."""
        return {column.head.lower(): column.cell for column in self.columns}

    def _visible_columns(self, wide: bool) -> list[Column]:
        return [column for column in self.columns if wide or not column.is_wide]
