"""What a transaction means: its limits and conditions, as etcd has them. Pure; the store in memory is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from store.port import Compare, Record, Rejected, Write

MAX_OPERATIONS = 128  # etcd's default for conditions or writes of one transaction, nested ones included
MAX_BYTES = 3 << 19  # etcd's default for one request, 1.5 MiB


def check_limits(guards: Sequence[Compare], writes: Sequence[Write]) -> None:
    """Raises Rejected where etcd would refuse the transaction whatever the state."""
    # Writes without conditions are not nested: each of their operations counts.
    width = max(len(guards), sum(1 if w.when else len(w.puts) + len(w.deletes) for w in writes))
    inner = max((max(len(w.when), len(w.puts) + len(w.deletes)) for w in writes if w.when), default=0)
    if width + inner > MAX_OPERATIONS:
        raise Rejected("too many operations in txn request")
    put = [key for write in writes for key, _ in write.puts]
    deleted = {key for write in writes for key in write.deletes}
    if len(set(put)) < len(put) or deleted.intersection(put):
        raise Rejected("duplicate key given in txn request")
    if not all((*put, *deleted, *(c.key for w in writes for c in w.when), *(g.key for g in guards))):
        raise Rejected("key is not provided")
    if sum(write.size_bytes for write in writes) > MAX_BYTES:
        raise Rejected("request is too large")


def inside(key: bytes, start: bytes, end: bytes) -> bool:
    """Whether a key lies in [start, end); the end b"\\0" is that of all keys."""
    return start <= key and (key < end or end == b"\0")


def holds(state: Mapping[bytes, Record], compare: Compare) -> bool:
    """Whether a condition holds in a state."""
    if compare.range_end is None:
        return _matches(compare, state.get(compare.key))
    found = [record for key, record in state.items() if inside(key, compare.key, compare.range_end)]
    return all(_matches(compare, record) for record in found) if found else _matches(compare, None)


def _matches(compare: Compare, record: Record | None) -> bool:
    operand = compare.operand
    if isinstance(operand, bytes):
        return record is not None and _related(record.value, operand, compare.relation)
    if record is None:
        return _related(0, operand, compare.relation)
    return _related(record.created if compare.field == "created" else record.modified, operand, compare.relation)


def _related(actual: bytes | int, operand: bytes | int, relation: str) -> bool:
    order = (actual > operand) - (actual < operand)  # type: ignore[operator]  # both are bytes or both numbers
    return order == {"<": -1, "=": 0, ">": 1}[relation]
