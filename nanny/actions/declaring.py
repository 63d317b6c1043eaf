"""What Nanny has under way, told to a CMS whose store has a new history: until then it grants nothing to anybody."""

from __future__ import annotations

from typing import Final

from control import Controller
from nanny.actions.effects import keys_of
from nanny.records import kinds
from nanny.world.leave import Hold, Leave

EVERY_S: Final = 5.0


class Declaring:
    """`run` is what the kit calls while this process acts."""

    def __init__(self, controller: Controller, leave: Leave) -> None:
        self._controller, self._leave = controller, leave

    async def run(self, _: str) -> float | None:
        """Look whether it is asked for; in how many seconds to look again."""
        if not self._leave.address:
            return None
        await self._leave.declare(running(self._controller))
        return EVERY_S


def running(controller: Controller) -> list[Hold]:
    """Batches, and instances with targets of their own, that were granted and not given back."""
    actions, own = controller.records(kinds.ACTION), controller.records(kinds.INSTANCE_TARGET)
    batches = [Hold(one.cms_task, frozenset(keys_of(one.batch))) for one in actions.values() if one.granted]
    single = [Hold(one.cms_task, frozenset({kinds.instance_of(name)})) for name, one in own.items()]
    return [hold for hold in (*batches, *single) if hold.task]
