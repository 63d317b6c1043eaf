"""Field masks of reads and updates."""

from collections.abc import Mapping
from typing import Any, Protocol

from google.protobuf.field_mask_pb2 import FieldMask

from hq.validation.descriptors import is_map
from hq.validation.faults import Faults, shown


class Described(Protocol):
    """A message's DESCRIPTOR: there are several types of them, depending on the runtime."""

    @property
    def name(self) -> str: ...
    @property
    def fields_by_name(self) -> Mapping[str, Any]: ...


def check_field_mask(mask: FieldMask, descriptor: Described, field: str = "field_mask") -> None:
    """Every path names a field of the message, or everything by `*`.

    Unlike google.protobuf.util, paths may lead through lists, to all their elements (`spec.revision.secret`).

    Raises:
        InvalidRequest: with the first unknown paths.
    """
    faults = Faults()
    for index, path in enumerate(mask.paths):
        if path != "*" and not is_path(path, descriptor):
            faults.add(f"{field}.paths[{index}]", f"{descriptor.name} has no {shown(path)}: correct it")
    faults.raise_any()


def is_path(path: str, descriptor: Described) -> bool:
    """Maps are named as a whole: no path leads into one."""
    here: Any = descriptor
    for name in path.split("."):
        field = here.fields_by_name.get(name) if here is not None else None
        if field is None:
            return False
        here = None if is_map(field) else field.message_type
    return True
