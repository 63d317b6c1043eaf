"""What a seeded bug is: one method of HQ replaced, the play in which it must show, and the promise that it breaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest

from tests.support.recorded_run import RecordedRun

Scene = Callable[[RecordedRun], Awaitable[None]]
Seed = Callable[[pytest.MonkeyPatch], None]


class Bug(NamedTuple):
    """One bug.

    Attributes:
        says: what HQ does wrong, as the table of docs/evidence.md has it.
        word: of the promise that is found broken.
        seed: puts the bug into HQ for as long as the patch lasts.
        replicas: how many play.
    """

    name: str
    says: str
    word: str
    scene: Scene
    seed: Seed
    replicas: int = 2


BUGS: list[Bug] = []


def bug(says: str, word: str, scene: Scene, replicas: int = 2) -> Callable[[Seed], Seed]:
    """Register a bug; it is called like its function."""

    def register(seed: Seed) -> Seed:
        BUGS.append(Bug(seed.__name__, says, word, scene, seed, replicas))
        return seed

    return register
