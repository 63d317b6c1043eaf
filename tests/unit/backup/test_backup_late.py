"""Restores amid other writes: a late write spoils no restore, and one just before a restore is not lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from hq.backup.restore import Disturbed
from store.memory import MemoryStore
from store.port import Commit, Compare, UnknownOutcome, Write
from tests.support.backups import KEYS, filled, kept, put, restored, saved, state


class SlowMember(MemoryStore):
    """The first transaction for which `is_slow` holds gets no answer; `arrive` brings it later."""

    def __init__(self, is_slow: Callable[[Write], bool]) -> None:
        super().__init__()
        self._is_slow = is_slow
        self._late: tuple[Sequence[Compare], Sequence[Write]] | None = None

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        if self._late is None and self._is_slow(writes[0]):
            self._late = guards, writes
            raise UnknownOutcome("a member was slow")
        return await super().commit(guards, writes, timeout_s)

    async def arrive(self) -> bool:
        """Bring the late transaction; return whether its guards held."""
        assert self._late is not None
        return (await super().commit(*self._late, 1.0)).guarded


class LateAmidPuts(SlowMember):
    """The late transaction arrives while records are put back."""

    def __init__(self, is_slow: Callable[[Write], bool]) -> None:
        super().__init__(is_slow)
        self.arrived: list[bool] = []

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        done = await super().commit(guards, writes, timeout_s)
        if any(key == KEYS.spec("i-0000") and value == b"spec 0" for key, value in writes[0].puts):
            self.arrived.append(await self.arrive())
        return done


async def test_a_deletion_that_arrives_late_removes_nothing_that_was_put_back() -> None:
    """The restore has sent it again, while its first try was held by a slow member."""
    source = await filled(300)
    file = await saved(source)
    target = LateAmidPuts(lambda write: KEYS.spec("i-0000") in write.deletes)
    for number in range(3):
        await put(target, KEYS.spec(f"i-{number:04}"), b"of another time")
    await restored(target, file, replace=True)
    assert target.arrived == [False]
    assert kept(await state(target)) == kept(await state(source))


async def test_a_late_start_of_a_restore_does_not_block_the_restored_store() -> None:
    target = SlowMember(lambda write: any(key == KEYS.restore for key, _ in write.puts))
    await restored(target, await saved(await filled(3)), replace=True)
    assert not await target.arrive()
    assert KEYS.restore.removeprefix(KEYS.prefix) not in await state(target)


async def test_an_instance_created_just_before_a_restore_survives_it() -> None:
    class Busy(MemoryStore):
        async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
            if any(key == KEYS.restore for key, _ in writes[0].puts) and not self._live.get(KEYS.spec("acknowledged")):
                await super().commit((), (Write((), ((KEYS.spec("acknowledged"), b"by a replica"),)),), 1.0)
            return await super().commit(guards, writes, timeout_s)

    target = Busy()
    with pytest.raises(Disturbed, match="another restore or writer"):
        await restored(target, await saved(await filled(3)))
    assert kept(await state(target)) == {b"spec/acknowledged": b"by a replica"}
