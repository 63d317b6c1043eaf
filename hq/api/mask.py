"""Field masks of reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from hq.validation.typed_fields import is_map

M = TypeVar("M", bound=Message)
Tree = dict[str, "Tree"]  # by field name; an empty one stands for the whole field


class Mask:
    """The fields that a reader asked for. Unlike protobuf's own, its paths lead through lists, to all elements."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._tree: Tree = {}
        # Short paths first: what a path names as a whole is not narrowed down by a longer one.
        for path in sorted(paths, key=len):
            _add(self._tree, path.split("."))

    def applied(self, message: M) -> M:
        """A copy that holds no other fields."""
        return _pruned(message, self._tree)


def _add(tree: Tree, names: list[str]) -> None:
    *above, last = names
    for name in above:
        if tree.get(name) == {}:
            return  # a shorter path names all of this
        tree = tree.setdefault(name, {})
    tree[last] = {}


def _pruned(message: M, tree: Tree) -> M:
    pruned = type(message)()
    for field, value in message.ListFields():
        below = tree.get(field.name)
        if below is None:
            continue
        if below:
            _set_pruned(pruned, field, value, below)
        else:
            _set_whole(pruned, field, value)
    return pruned


def _set_pruned(target: Message, field: FieldDescriptor, value: Any, tree: Tree) -> None:
    into = getattr(target, field.name)
    if field.is_repeated:
        into.extend(_pruned(item, tree) for item in value)
    else:
        into.CopyFrom(_pruned(value, tree))


def _set_whole(target: Message, field: FieldDescriptor, value: Any) -> None:
    if is_map(field) or field.is_repeated:
        getattr(target, field.name).MergeFrom(value)
    elif field.message_type is not None:
        getattr(target, field.name).CopyFrom(value)
    else:
        setattr(target, field.name, value)
