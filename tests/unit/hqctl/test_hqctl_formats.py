"""Messages as text: equal messages are shown alike."""

from __future__ import annotations

from hqcli.formats import as_dict
from hqctl.commands.diffing import unified_diff
from hqpb.v1 import instance_pb2

KEYS = tuple(f"key-{number:02}" for number in range(20))  # enough for any two orders of filling to collide


def instance(keys: tuple[str, ...]) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    container = made.spec.revision.add().container.add()
    for key in keys:
        for entries in (made.meta.labels, made.meta.annotations, container.environment):
            entries[key] = "x"
    return made


def test_equal_instances_whose_maps_were_filled_in_other_orders_do_not_differ() -> None:
    one, other = instance(KEYS), instance(KEYS[::-1])
    assert list(unified_diff(one, other, "a", "a.yaml")) == []


def test_the_keys_of_maps_are_sorted_and_fields_keep_their_order() -> None:
    data = as_dict(instance(KEYS))
    assert list(data) == ["meta", "spec"]
    assert list(data["meta"]) == ["labels", "annotations"]
    assert list(data["meta"]["labels"]) == list(KEYS)
    assert list(data["spec"]["revision"][0]["container"][0]["environment"]) == list(KEYS)
