"""Large answers on their way: gRPC keeps them until their callers take them, and some never do.

An answer cannot be taken back from gRPC: it stays until its caller takes it, its connection ends or is too old.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from serving.limiting.admission import Admission


def count_until_taken(admission: Admission, peer: str, size_bytes: int) -> None:
    """The current task, which serves a call, sends so much next and then ends.

    Raises:
        Overloaded: too much is on its way already, to all or to this peer.
    """
    admission.hold_answer(peer, size_bytes)
    task = cast("asyncio.Task[Any]", asyncio.current_task())
    task.add_done_callback(lambda _: admission.release_answer(peer, size_bytes))
