"""What a reader asks for."""

from hq.validation.enums import note_enums
from hq.validation.faults import Faults, entry, member
from hq.validation.ids import check_id, check_label_key, check_label_value
from hqapi.requests import MAX_FILTER_VALUES
from hqpb.v1.service_pb2 import InstanceFilter


def check_filter(instance_filter: InstanceFilter, prefix: str = "filter") -> None:
    """A filter as FindInstances, CountInstances and WatchInstances take it.

    Raises:
        InvalidRequest: a value could never match, or an enum value is unknown.
    """
    faults = Faults()
    note_ids(faults, instance_filter, prefix)
    for key, value in instance_filter.labels.items():
        here = entry(member(prefix, "labels"), key)
        faults.note(check_label_key(key, here) or check_label_value(value, here))
    note_enums(faults, instance_filter, prefix)
    faults.raise_any()


def note_ids(faults: Faults, instance_filter: InstanceFilter, path: str) -> None:
    lists = (
        ("instance_id", instance_filter.instance_id),
        ("service_id", instance_filter.service_id),
        ("node_name", instance_filter.node_name),
        ("revision_id", instance_filter.revision_id),
        ("cluster", instance_filter.cluster),
    )
    for field, values in lists:
        here = member(path, field)
        if len(values) > MAX_FILTER_VALUES:
            faults.add(here, f"{len(values)} values are too many: use at most {MAX_FILTER_VALUES}")
        for index, value in enumerate(values[:MAX_FILTER_VALUES]):
            faults.note(check_id(value, f"{here}[{index}]"))
