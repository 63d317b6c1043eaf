"""The session word: what shuts out this replica's late writes.

Every transaction of the replica compares the word. To change it is itself exact: the change compares the revision at
which the old word was put, so that of several tries of one change at most one takes place, whenever they arrive.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from store.epoch import Epoch
from store.keys import SESSION, Keys, encode_word, new_word, word_of
from store.port import (
    Applied,
    Compare,
    ConditionFailed,
    Rejected,
    Store,
    StoreError,
    Unavailable,
    UnknownOutcome,
    Write,
)

log = logging.getLogger(__name__)

_TIMEOUT_S = 2.0
_RETRY_S = (0.05, 1.0)


class WriterSession:
    """The word of this replica. `ready` before a transaction, `guard` in it, `change` after one without an answer."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        rng: random.Random,
        watched: Callable[[int], Awaitable[None]],
    ) -> None:
        """`watched` returns when everything up to a version has come through the watch; Unavailable on a new epoch."""
        self._store, self._epoch, self._rng, self.watched = store, epoch, rng, watched
        self._key = keys.of(SESSION, replica)
        self._word = self._revision = 0
        self._doubted = True
        self._doubts = 0
        self._busy = asyncio.Lock()

    def guard(self) -> Compare:
        """The condition that the word is still the same."""
        return Compare(self._key, "value", encode_word(self._word))

    @property
    def is_changing(self) -> bool:
        """Whether the word is being changed or checked: the store may have another one already."""
        return self._busy.locked()

    def doubt(self) -> None:
        """Have `ready` look the word up before the next transaction: a guard did not hold."""
        self._doubted = True
        self._doubts += 1

    async def ready(self, timeout_s: float) -> None:
        """Return when the word is in the store. Raises Unavailable, NoSpace."""
        if not self._doubted and not self.is_changing:
            return
        try:
            async with asyncio.timeout(timeout_s), self._busy:
                if self._doubted:
                    await self._look()
        except (TimeoutError, UnknownOutcome, Rejected) as error:
            raise Unavailable(f"no session with the store: {str(error) or 'it did not answer in time'}") from error

    async def _look(self) -> None:
        doubts = self._doubts
        record, _ = await self._store.get(self._key)
        self._revision = record.modified if record else 0
        if record is None or not self._word or word_of(record.value) != self._word:
            outcome, revision = await self._put_word(new_word(self._rng), self._revision)
            if not isinstance(outcome, Applied):
                raise Unavailable("the session changed while it was being replaced")
            self._revision = revision
        self._doubted = doubts != self._doubts  # a doubt that came up meanwhile remains

    async def change(self) -> None:
        """Change the word, and return when the change has come back through the watch, however long that takes.

        From then on no transaction that compares the old word can take place, and each one that did take place has come
        before. Returns at once when the epoch changes: that shuts the old writes out as well.
        """
        async with self._busy:
            epoch, word, delay_s = self._epoch.current, new_word(self._rng), _RETRY_S[0]
            while self._epoch.current == epoch:
                try:
                    outcome, revision = await self._put_word(word, self._revision)
                    if isinstance(outcome, Applied):
                        self._revision = revision
                        await self.watched(revision)
                        return
                    # An earlier attempt did reach the store, or somebody deleted the key: continue from that revision.
                    self._revision = outcome.modified[self._key]
                except StoreError as error:
                    log.warning("opening a new session: %s", error)
                    await asyncio.sleep(self._rng.uniform(delay_s / 2, delay_s))
                    delay_s = min(delay_s * 2, _RETRY_S[1])
            self._doubted = True

    async def _put_word(self, word: int, modified: int) -> tuple[Applied | ConditionFailed, int]:
        put = Write((Compare(self._key, "modified", modified),), ((self._key, encode_word(word)),))
        commit = await self._store.commit((self._epoch.guard(),), (put,), _TIMEOUT_S)
        if not commit.guarded:
            raise Unavailable("the store has another epoch")
        if isinstance(commit.outcomes[0], Applied):
            self._word = word
        return commit.outcomes[0], commit.revision
