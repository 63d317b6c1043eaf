"""The keyboard of a terminal: each key is an order for the chosen location."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator

from tools.demo.setting import LOCATIONS

HINTS = """\
 1 2 3  choose a location    k  kill a replica     K  bring it back
 t  silence 10% of agents    a  silence all        w  wake them
 s  stop the location        S  start it again
 d  deploy a revision        r  roll it back       q  quit"""
# For a terminal with few rows.
FEW_HINTS = """\
 1 2 3 choose  k K kill, start a replica  s S stop, start the location  q quit
 t a silence 10%, all agents  w wake them  d r deploy a revision, roll it back"""

_ORDERS = {
    "k": "kill-replica {}",
    "K": "start-replica {}",
    "s": "stop-location {}",
    "S": "start-location {}",
    "t": "silence {} 10%",
    "a": "silence {} all",
    "w": "wake {}",
    "d": "deploy",
    "r": "rollback",
}


class Keys:
    """Attributes: `chosen` is the location that keys speak of."""

    def __init__(self, order: Callable[[list[str]], object], leave: Callable[[], None]) -> None:
        self.chosen = LOCATIONS[0]
        self._order, self._leave = order, leave

    def pressed(self, key: str) -> None:
        """A key; those without a meaning are passed over."""
        if key == "q":
            self._leave()
        elif key in "123":
            self.chosen = LOCATIONS[int(key) - 1]
        elif key in _ORDERS:
            self._order(_ORDERS[key].format(self.chosen).split())


@contextlib.contextmanager
def listening(keys: Keys) -> Iterator[None]:
    """Read single keys from the terminal; afterwards it is as it was. Ctrl-C remains a signal."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def read() -> None:
        for key in os.read(descriptor, 64).decode(errors="ignore"):
            keys.pressed(key)

    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
