"""Three-way merge of two people's changes to one object, unless they conflict. No I/O."""

from __future__ import annotations

from typing import Any


class Contradiction(Exception):
    """Both changed the same field, differently.

    Attributes:
        fields: their paths.
        ours_first: the changes of both, with ours in these fields.
    """

    def __init__(self, fields: list[str], ours_first: dict[str, Any]) -> None:
        super().__init__(", ".join(fields))
        self.fields = fields
        self.ours_first = ours_first


_ABSENT: Any = object()


def merge_three_way(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """`theirs` with the changes from `base` to `ours`. Lists of things with an id (or name) are merged by it.

    Raises:
        Contradiction: with every field that both changed.
    """
    fields: list[str] = []
    result = _value(base, ours, theirs, "", fields)
    if fields:
        raise Contradiction(fields, result)
    return dict(result)


def _value(base: Any, ours: Any, theirs: Any, path: str, fields: list[str]) -> Any:
    if ours == theirs or base == theirs:
        return ours
    if base == ours:
        return theirs
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return _dict(base if isinstance(base, dict) else {}, ours, theirs, path, fields)
    base = base if isinstance(base, list) else []
    key = _key_of(base, ours, theirs)
    if key:
        by_key = [{item[key]: item for item in side} for side in (base, ours, theirs)]
        return list(_dict(by_key[0], by_key[1], by_key[2], path, fields).values())
    fields.append(path)
    return ours


def _dict(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], path: str, fields: list[str]
) -> dict[str, Any]:
    result = {}
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        inner = f"{path}.{name}" if path else str(name)
        before, our, their = (side.get(name, _ABSENT) for side in (base, ours, theirs))
        value = _value(before, our, their, inner, fields)
        if value is not _ABSENT:
            result[name] = value
    return result


def _key_of(*lists: Any) -> str:
    """The field that identifies the items of these lists; empty: there is none."""
    for key in ("id", "name"):
        if all(isinstance(one, list) and all(isinstance(i, dict) and i.get(key) for i in one) for one in lists):
            return key
    return ""
