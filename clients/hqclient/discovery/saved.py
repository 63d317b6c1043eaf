"""The last good list in a file, so that a restart without HQ still has addresses."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hqclient.discovery.endpoint import DEFAULT_WEIGHT, MAX_WEIGHT, KnownInstance

FORMAT = 1
_FIELDS = {"cluster": str, "id": str, "uid": int, "service": str, "node": str, "host": str}
_FIELDS |= {"is_ready": bool, "weight": int}
_LONGEST_NAME = 150


class Unusable(Exception):
    """The file exists but cannot be used; str() says why."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """A list that was complete at a moment.

    Attributes:
        services: those that the instances belong to; empty: all.
        as_of: that moment, in seconds of wall time; 0: unknown.
        resume_token: a watch may continue after it; empty: it may not.
        epochs: by cluster, the epoch of the store that the list came from.
    """

    services: tuple[str, ...]
    as_of: float
    resume_token: str
    instances: Sequence[KnownInstance]
    epochs: Mapping[str, str]

    def age_s(self, wall: float) -> float:
        """Seconds since `as_of`; infinite: unknown, because that is 0 or in the future (a clock was set back)."""
        age_s = wall - self.as_of
        return age_s if 0.0 <= age_s < wall else math.inf


def file_name(services: Iterable[str], *, ready_only: bool = True) -> str:
    """The file name for the state of these services (none: all services): readable where possible."""
    suffix = "" if ready_only else "+any"  # no id of a service has a plus sign
    names = [quote(service, safe="@") for service in sorted(services)]
    legible = "+".join(names) + suffix if names else f"all{suffix}+services"
    if len(legible) <= _LONGEST_NAME:
        return f"{legible}.json"
    return f"{len(names)}-services-{hashlib.sha256(legible.encode()).hexdigest()[:32]}.json"


def save(path: Path, state: SavedState) -> None:
    """Write it atomically: readers see the old file or the new one, complete.

    Raises:
        OSError: the old file is unchanged.
    """
    document = {
        "format": FORMAT,
        "services": list(state.services),
        "as_of": state.as_of,
        "resume_token": state.resume_token,
        "epochs": dict(state.epochs),
        "instances": [_entry(instance) for instance in state.instances],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as stream:
            json.dump(document, stream, separators=(",", ":"))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path, services: Iterable[str]) -> SavedState | None:
    """Load the state that was saved for exactly these services; None: none was.

    Raises:
        Unusable: it cannot be read, is of another format or of other services, or contains what HQ never sends.
    """
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise Unusable(f"{path} cannot be read: {error}") from error
    try:
        return _state(document, tuple(sorted(services)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unusable(f"{path} is not a discovery file: {error}") from error


def _state(document: Any, services: tuple[str, ...]) -> SavedState:
    _expect(document["format"] == FORMAT, f"format {document['format']}, wanted {FORMAT}")
    _expect(document["services"] == list(services), f"it is for {document['services']}, wanted {list(services)}")
    as_of, token, epochs = document["as_of"], document["resume_token"], document["epochs"]
    _expect(isinstance(as_of, int | float) and isinstance(token, str), "as_of or resume_token is malformed")
    _expect(all(isinstance(epoch, str) for epoch in epochs.values()), "an epoch is malformed")
    instances = tuple(_instance(entry, services) for entry in document["instances"])
    return SavedState(services, float(as_of), token, instances, epochs)


def _entry(instance: KnownInstance) -> dict[str, Any]:
    entry = asdict(instance)
    if instance.weight == DEFAULT_WEIGHT:
        del entry["weight"]  # the last release refuses fields that it does not know
    return entry


def _instance(entry: Any, services: tuple[str, ...]) -> KnownInstance:
    entry = {"is_ready": True, "weight": DEFAULT_WEIGHT, **entry}  # older files have neither
    for name, kind in _FIELDS.items():
        _expect(type(entry[name]) is kind, f"{name} is malformed")
    _expect(not services or entry["service"] in services, f"{entry['id']} belongs to another service")
    _expect(0 <= entry["weight"] <= MAX_WEIGHT, f"weight of {entry['id']} is malformed")
    for port, number in entry["ports"].items():
        _expect(type(number) is int and 1 <= number <= 65535, f"port {port} of {entry['id']} is malformed")
    _expect(all(isinstance(value, str) for value in entry["labels"].values()), "a label is malformed")
    revisions = tuple(entry["revisions"])
    _expect(all(isinstance(revision, str) for revision in revisions), "a revision is malformed")
    return KnownInstance(**{**entry, "revisions": revisions})


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
