"""The supervisor: brings what is there to what is wanted, and says how far it got.

Everything that happens (a new wish, an end of preparation, a process that ends) wakes one loop, which plans anew.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass

from clients.instancectl import conditions, desired as wishes, volumes
from clients.instancectl.adopt import Found, take_over
from clients.instancectl.conditions import Verdict
from clients.instancectl.desired import Desired
from clients.instancectl.fingerprint import RevisionKey
from clients.instancectl.installs import Installs
from clients.instancectl.plan import Action, Actual, Cancel, Prepare, Remove, Run, Stop, Wanted, plan
from clients.instancectl.prepare import Preparer
from clients.instancectl.running import Running
from clients.instancectl.sink import Sink
from clients.instancectl.source import Asked, Gone, Source, Trouble, Update
from clients.instancectl.store import Store
from clients.instancectl.subject import SubjectId
from clients.instancectl.unpack import remove_tree
from clients.instancectl.workshop import Workshop
from hqpb.v1.instance_pb2 import ContainerStatus, RevisionStatus

log = logging.getLogger(__name__)
LAST_WORDS_S = 3.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How it goes about its work.

    Attributes:
        starts: False: prepare and remove, but run nothing (`--once`).
        stops_when_fenced: another reporter has the instance: stop its processes, for they run elsewhere.
    """

    starts: bool = True
    stops_when_fenced: bool = True


class Supervisor:
    """Supervises the instance of one directory.

    Attributes:
        gone: the instance was deleted or moved; set when that has been carried out.
        fenced: another reporter took over; empty: nobody did.
        trouble: of the source; empty: none.
    """

    def __init__(
        self,
        source: Source,
        workshop: Workshop,
        preparer: Preparer,
        store: Store,
        manner: Manner,
    ) -> None:
        self.sink: Sink
        self.desired: Desired | None = None
        self.running: Running | None = None
        self.gone: Gone | None = None
        self.fenced = self.trouble = ""
        self.statuses: dict[str, RevisionStatus] = {}
        self._source = source
        self._shop = workshop
        self._store = store
        self._manner = manner
        self._wake = asyncio.Event()
        self.installs = Installs(preparer, workshop.state, workshop.clock, self._wake.set)
        self._tasks: set[asyncio.Task[None]] = set()
        self._removing: set[RevisionKey] = set()
        self._stopping: asyncio.Task[None] | None = None
        self._is_ending = False
''' placeholder
