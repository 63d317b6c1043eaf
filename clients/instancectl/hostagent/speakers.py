"""Who may speak for which instances at the host agent: root, its own user, and others as configured."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Sequence
from typing import Final

from instancectl.settings import Speaker
from serving.rights.patterns import Patterns

_USER: Final = "{user}"
_ROOT: Final = 0


def user_of(uid: int) -> str:
    """The name of a user; empty: there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return ""


class Speakers:
    """Root and the host agent's own user speak for every instance of the node; others as configured."""

    def __init__(
        self, speakers: Sequence[Speaker] = (), own_uid: int | None = None, name: Callable[[int], str] = user_of
    ) -> None:
        self._speakers, self._name = speakers, name
        self._trusted = {_ROOT, os.getuid() if own_uid is None else own_uid}

    @property
    def has_others(self) -> bool:
        """Whether others than root and the own user may connect."""
        return bool(self._speakers)

    def may(self, uid: int, instance_id: str) -> bool:
        """Whether the user may speak for the instance."""
        return self.of(uid)(instance_id)

    def of(self, uid: int) -> Callable[[str], bool]:
        """Instances that the user may report for, now."""
        if uid in self._trusted:
            return lambda _: True
        # Asked each time: a uid may belong to another user by now, and the lookup takes microseconds.
        name = self._name(uid) if self._speakers and uid >= 0 else ""
        if not name or "*" in name:
            return lambda _: False
        own = [
            Patterns([word.replace(_USER, name) for word in speaker.instances])
            for speaker in self._speakers
            if name in Patterns((speaker.users,))
        ]
        return lambda instance_id: any(instance_id in patterns for patterns in own)
