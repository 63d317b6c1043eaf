"""Descriptions and configuration from files. The only place in nanny that opens files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from descriptions.description import Description, parse_description
from descriptions.fields import Fields
from descriptions.installations import addresses_of
from hqcli.documents import BadDocument, documents_in, texts


def read_descriptions(names: Sequence[str]) -> list[Description]:
    """The descriptions in files, folders and `-` (stdin), in order.

    Raises:
        BadDocument: one line for each fault, with file, document and field.
    """
    found: list[Description] = []
    bad: list[str] = []
    for place, value in _documents(names, bad):
        faults: list[str] = []
        found.append(parse_description(value, place, faults))
        bad += [f"{place}: {fault}" for fault in faults]
    bad += _twice(found)
    if bad:
        raise BadDocument("\n".join(bad))
    return found


def read_installations(name: str) -> dict[str, tuple[str, ...]]:
    """The installations of a configuration file (`installations: {name: [host:port]}`). Raises BadDocument."""
    bad: list[str] = []
    found: dict[str, tuple[str, ...]] = {}
    for place, value in _documents([name], bad):
        faults: list[str] = []
        fields = Fields(value, "", faults)
        if (listed := fields.raw("installations")) is not None:
            found.update(addresses_of(listed, "installations", faults))
        fields.done()
        bad += [f"{place}: {fault}" for fault in faults]
    if bad:
        raise BadDocument("\n".join(bad))
    return found


def default_config() -> str:
    """Where a configuration file is looked for if none is named; empty: there is none."""
    path = Path.home() / ".config" / "nanny.yaml"
    return str(path) if path.is_file() else ""


def _documents(names: Sequence[str], bad: list[str]) -> list[tuple[str, Any]]:
    """Documents with their places: `web.yaml, document 2`."""
    return [found for name, text in texts(tuple(names)) for found in documents_in(name, text, bad)]


def _twice(descriptions: Sequence[Description]) -> list[str]:
    """Instances that two documents describe: neither takes precedence."""
    first: dict[tuple[str, str], str] = {}
    found = []
    for description in descriptions:
        for placement in description.placements:
            key = placement.installation, placement.id
            other = first.setdefault(key, description.place)
            if placement.id and other != description.place:
                found.append(f"{placement.place}.id: {placement.id} is described in {other} too")
    return found
