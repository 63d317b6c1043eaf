"""Which patches of etcd are free of the faults that could lose or corrupt what servers keep there, by its change logs.

Older ones lose deletions at a compacted revision (etcd#18089, #19179), let progress notifications overtake events
(#15220), or may corrupt data when a snapshot is applied during a defragmentation (#20648).
"""

from __future__ import annotations

import re
from typing import Final

_FIRST_SOUND: Final = {(3, 4): 38, (3, 5): 23, (3, 6): 5, (3, 7): 0}


def is_sound(version: tuple[int, int, int]) -> bool:
    """Whether no such fault is known of a version. A minor release that is not listed is newer, or 3.3."""
    first = _FIRST_SOUND.get(version[:2])
    return version[:2] > max(_FIRST_SOUND) if first is None else version[2] >= first


def advice(version: str) -> str:
    """Return a warning about a member of this version, like "3.4.23"; empty: it has no known fault."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        return ""
    line = int(match[1]), int(match[2])
    if is_sound((*line, int(match[3]))):
        return ""
    first = _FIRST_SOUND.get(line)
    newer = "3.5 or newer" if first is None else f"{line[0]}.{line[1]}.{first} or newer"
    return f"etcd {version} has faults that can lose or corrupt data: upgrade to {newer}"
