"""The content of a snapshot: a description of a service, checked completely, with all faults at once.

It is what `nanny upload` takes, with one revision, which gets an id of its own in HQ: a digest of what runs.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from descriptions.description import Description, Placement, parse_description
from descriptions.desired import OWNED
from descriptions.revisions import Definition
from hqcli.documents import documents_in
from hqpb.v1 import instance_pb2
from nanny.rollout.views import Key
from nanny.snapshots.weights import SHARE
from serving.errors import InvalidRequest, TooLarge, Violation, invalid

MAX_CONTENT_BYTES: Final = 8 << 20
_MOST_INSTANCES: Final = 20_000  # as in lists of requests: each is looked at often, and costs a kilobyte
_MOST_FAULTS: Final = 100
_AGAIN_BYTES: Final = 100
CHUNK_BYTES: Final = 256 << 10
_ID_CHARACTERS: Final = 16
_NOT_HERE: Final = {
    "ready": "targets are set with `nanny target`",
    "installed": "targets are set with `nanny target`",
    "drop": "targets are set with `nanny target`",
    "installations": "Nanny knows the locations itself",
}


@dataclass(frozen=True, slots=True)
class Content:
    """A description that was checked.

    Attributes:
        id: the snapshot's: a hash of the parsed text, independent of comments and the order of fields.
        title: the id of its revision as written: for people.
        description: with the one revision under `revision_id`.
        placements: by location and instance.
    """

    id: str
    title: str
    description: Description
    placements: Mapping[Key, Placement]

    @property
    def revision_id(self) -> str:
        """The id in HQ of what runs: snapshots that run the same share it."""
        return self.description.definitions[0].id

    @property
    def revision(self) -> instance_pb2.InstanceRevision:
        """Return the revision that HQ should hold for this snapshot; its target is unset."""
        return self.description.definitions[0].message


def read_content(
    service: str,
    text: bytes,
    locations: Collection[str],
    as_id: str = "",
    revision_id: str = "",
    *,
    was_accepted: bool = False,
) -> Content:
    """The content of a snapshot from its text.

    Args:
        as_id: the snapshot's id, if it is not the hash of the content: an adopted one keeps the revision's id.
        revision_id: of what it runs, if that has an id already; empty: a digest of that.
        was_accepted: the text is a stored one, perhaps older than the bounds on what callers send.

    Raises:
        TooLarge: over MAX_CONTENT_BYTES, as written or with its aliases written out.
        InvalidRequest: with every fault that was found, each under its field.
    """
    if len(text) > MAX_CONTENT_BYTES:
        raise TooLarge(f"content has {len(text)} bytes; the limit is {MAX_CONTENT_BYTES}", "MAX_CONTENT_BYTES")
    value = _value(text, was_accepted)
    faults: list[str] = []
    description = parse_description(value, "content", faults)
    placements = _placements_by_key(description, sorted(locations), faults)
    faults += _not_here(value, description, service)
    if faults:
        raise InvalidRequest(*(_violation(fault) for fault in faults[:_MOST_FAULTS]))
    snapshot_id = as_id or _hash(value)
    title = description.definitions[0].id
    return Content(snapshot_id, title, _under(description, revision_id or _digest(description)), placements)


def digest_of(content: Content) -> str:
    """A digest of what it runs: between contents with equal digests, no instance that both name is restarted."""
    return _digest(content.description)


def chunks_of(text: bytes) -> list[bytes]:
    """A text as records hold it."""
    packed = zlib.compress(text)
    return [packed[start : start + CHUNK_BYTES] for start in range(0, len(packed), CHUNK_BYTES)]


def text_of(chunks: list[bytes]) -> bytes:
    """The text that `chunks_of` cut."""
    return zlib.decompress(b"".join(chunks))


def _value(text: bytes, was_accepted: bool) -> Any:
    bad: list[str] = []
    try:
        documents = [value for _, value in documents_in("content", text.decode(), bad, was_accepted=was_accepted)]
    except UnicodeDecodeError as error:
        raise invalid("content", f"is not UTF-8: {error.reason} at byte {error.start}") from None
    if bad or len(documents) != 1:
        what = bad or [f"has {len(documents)} documents: a snapshot has exactly one"]
        raise InvalidRequest(*(_violation(fault) for fault in what))
    if not was_accepted:
        _check_expanded(documents[0])
        _check_instances(documents[0])
    return documents[0]


def _check_instances(value: Any) -> None:
    """Raises InvalidRequest: there are too many."""
    instances = value.get("instances") if isinstance(value, dict) else None
    if isinstance(instances, list) and len(instances) > _MOST_INSTANCES:
        what = f"has {len(instances)} entries: a snapshot has at most {_MOST_INSTANCES}; make several services of it"
        raise invalid("content.instances", what)


def _check_expanded(value: Any) -> None:
    """YAML aliases may expand to a billion times the text, and defaults to much of it for each instance.

    Raises TooLarge.
    """
    instances = value.get("instances") if isinstance(value, dict) else None
    own = [one for one in instances if _has_own(one)] if isinstance(instances, list) else []
    if (
        _expanded_bytes(value) + 2 * len(own) * _expanded_bytes(value.get("allocation") if own else None)
        > MAX_CONTENT_BYTES
    ):
        what = f"content with its aliases and defaults written out is over {MAX_CONTENT_BYTES}"
        raise TooLarge(what, "MAX_CONTENT_BYTES")


def _has_own(instance: Any) -> bool:
    """Whether an instance changes part of the common allocation, which then is written out in full for it."""
    return isinstance(instance, dict) and isinstance(instance.get("allocation"), dict)


def _expanded_bytes(value: Any) -> int:
    """About how many bytes a value has with its aliases written out; counting ends once it is over the limit."""
    found, waiting, seen = 0, [value], set[int]()
    while waiting and found <= MAX_CONTENT_BYTES:
        one = waiting.pop()
        found += len(one) if isinstance(one, str) else 1
        if isinstance(one, dict | list):
            found += _AGAIN_BYTES if id(one) in seen else 0  # an alias: a few bytes may stand for millions
            seen.add(id(one))
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
    return found


def _violation(fault: str) -> Violation:
    """`path: what` under the field `content`."""
    path, colon, what = fault.partition(": ")
    named = bool(colon) and not path.startswith("content") and " " not in path
    return Violation(f"content.{path}", what) if named else Violation("content", fault.removeprefix("content: "))


def _placements_by_key(description: Description, locations: list[str], faults: list[str]) -> dict[Key, Placement]:
    placed: dict[Key, Placement] = {}
    for number, placement in enumerate(description.placements):
        location = placement.installation or (locations[0] if len(locations) == 1 else "")
        if location not in locations:
            what = f"unknown location {location}" if location else "is missing, and there are several locations"
            faults.append(f"instances[{number}].installation: {what}; known: {', '.join(locations)}")
        placed[location, placement.id] = placement
    return placed


def _not_here(value: Any, description: Description, service: str) -> Iterator[str]:
    for name, instead in _NOT_HERE.items():
        if isinstance(value, dict) and name in value:
            yield f"{name}: does not belong in a snapshot: {instead}"
    for name in (OWNED, SHARE):
        if name in description.annotations:
            yield f"annotations.{name}: belongs to Nanny: leave it out"
    if description.service and description.service != service:
        yield f"service: is {description.service}, but the snapshot is of {service}"
    if len(description.definitions) != 1:
        yield f"revisions: has {len(description.definitions)} entries: a snapshot has exactly one"


def _hash(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:_ID_CHARACTERS]


def _digest(description: Description) -> str:
    """Digest of what runs, without the name that people gave it."""
    definition, unnamed = description.definitions[0], instance_pb2.InstanceRevision()
    unnamed.CopyFrom(definition.message)
    unnamed.ClearField("id")
    told = b"\1" if definition.tells_secrets else b"\0"
    return hashlib.sha256(told + unnamed.SerializeToString(deterministic=True)).hexdigest()[:_ID_CHARACTERS]


def _under(description: Description, revision_id: str) -> Description:
    written = description.definitions[0]
    message = instance_pb2.InstanceRevision()
    message.CopyFrom(written.message)
    message.id = revision_id
    return replace(description, definitions=(Definition(message, written.tells_secrets),))
