"""Field masks of reads: what they name is kept, through lists too, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hq.api.answers import Mask
from hq.validation import check_field_mask
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.cache_entries import reported
from tests.support.instance_strategies import instances

some = settings(suppress_health_check=list(HealthCheck))


@st.composite
def paths(draw: st.DrawFn) -> str:
    """Any path that a request may name."""
    here, names = model.Instance.DESCRIPTOR, []
    while True:
        field = draw(st.sampled_from(sorted(here.fields_by_name)))
        names.append(field)
        inner = here.fields_by_name[field].message_type
        if inner is None or inner.GetOptions().map_entry or draw(st.booleans()):
            return ".".join(names)
        here = inner


@pytest.mark.long
@some
@given(instances(), st.lists(paths(), min_size=1, max_size=4))
def test_a_mask_keeps_what_it_names_and_nothing_else(instance: model.Instance, named: list[str]) -> None:
    check_field_mask(pb.FindInstancesRequest(field_mask={"paths": named}).field_mask, model.Instance.DESCRIPTOR)
    masked = Mask(named).masked_copy(instance)
    before, after = leaves(instance), leaves(masked)
    assert after == {path: values for path, values in before.items() if named_by(path, named)}


def named_by(path: str, named: list[str]) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in named)


def leaves(message: object, prefix: str = "") -> dict[str, list[object]]:
    """All values by the path of their field; those of a list's elements together."""
    found_leaves: dict[str, list[object]] = {}
    for field, value in message.ListFields():  # type: ignore[attr-defined]
        path = f"{prefix}{field.name}"
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            found_leaves.setdefault(path, []).append(str(value) if field.message_type is None else dict(value))
            continue
        for item in value if field.is_repeated else [value]:
            inner = leaves(item, f"{path}.")
            for below, values in inner.items():
                found_leaves.setdefault(below, []).extend(values)
    return found_leaves


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        (("spec.revision", "spec.revision.id"), {"spec.revision"}),
        (("spec.revision.id", "spec.revision", "meta"), {"spec.revision", "meta"}),
        (("spec", "spec.node_name"), {"spec"}),
    ],
)
def test_a_path_within_another_one_does_not_narrow_it(named: tuple[str, ...], kept: set[str]) -> None:
    instance = reported().instance()
    assert Mask(named).masked_copy(instance) == Mask(kept).masked_copy(instance)
