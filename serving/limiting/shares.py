"""How much of something one peer holds at the same time: nobody gets all of it."""

from __future__ import annotations

from serving.errors import Overloaded


def host_of(peer: str) -> str:
    """The address of a peer without its port: a new connection makes no new peer."""
    return address_of(peer.rpartition(":")[0])


def address_of(host: str) -> str:
    """The one way to write an address, whichever transport says it: no brackets, IPv4 as such."""
    return host.strip("[]").removeprefix("::ffff:") if ":" in host else host


class Shares:
    """Counts what each peer holds, up to a limit. Peers that hold nothing take no memory."""

    def __init__(self, limit: str, most: int, words: str) -> None:
        self._limit = limit
        self._most = most
        self._words = words
        self._held: dict[str, int] = {}

    def take(self, peer: str, amount: int = 1) -> None:
        """Count in.

        Raises:
            Overloaded: the peer would hold more than it may; nothing was counted.
        """
        held = self._held.get(peer, 0) + amount
        if held > self._most:
            raise self._over(peer)
        if held:
            self._held[peer] = held

    def check(self, peer: str, amount: int) -> None:
        """Whether as much more could be counted in. Raises Overloaded: as `take`."""
        if self._held.get(peer, 0) + amount > self._most:
            raise self._over(peer)

    def _over(self, peer: str) -> Overloaded:
        return Overloaded(f"{peer} has {self._most} {self._words} already: finish some first", limit=self._limit)

    def count(self, peer: str, amount: int = 1) -> None:
        """Count in, or out, whatever the limit."""
        held = self._held.get(peer, 0) + amount
        if held:
            self._held[peer] = held
        else:
            self._held.pop(peer, None)

    def has_more(self, peer: str) -> bool:
        """One more would still be within the limit."""
        return self._held.get(peer, 0) < self._most

    def has_room(self, peer: str) -> bool:
        """The peer holds no more than it may."""
        return self._held.get(peer, 0) <= self._most

    def give_back(self, peer: str, amount: int = 1) -> None:
        """Count out what was counted in."""
        left = self._held[peer] - amount
        if left:
            self._held[peer] = left
        else:
            del self._held[peer]

    def held_by(self, peer: str) -> int:
        """What the peer holds now."""
        return self._held.get(peer, 0)
