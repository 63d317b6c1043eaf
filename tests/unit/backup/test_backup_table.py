"""The table of servers for backups, which imports none of them, agrees with each of them."""

from __future__ import annotations

import random

import click
import pytest

from cms.desk import CmsSettings
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budgets
from cms.main import serve as cms_serve
from cms.server import CmsServer
from control import ControlConfig, Controller
from hq import keys as k
from hq.backup.rehearsal import messages
from hq.backup.servers import CMS, NANNY, SERVERS, WALLE, BackedUpServer
from hq.main import serve as hq_serve
from nanny.serve import serve as nanny_serve
from nanny.server import NannyProcess as NannyServer
from nanny.world.leave import NoCms
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from store.memory import MemoryStore
from tests.support.walle.running import ANYWHERE, pretending
from walle.notices import SmtpServer
from walle.serve import serve as walle_serve
from walle.server import WalleServer


def controller_of(server: BackedUpServer) -> Controller:
    """A controller of a process that does not run."""
    config, store, rng = ControlConfig(server.prefix, "one"), MemoryStore(), random.Random(1)
    shared = ServerContext(Limits(), SystemClock(), RequestIds("one"))
    if server is CMS:
        book = TaskLedger.empty(Rules(), {}, Budgets())
        return CmsServer(config, store, rng, shared, ANYWHERE, {}, book, CmsSettings({}, 0.5)).controller
    if server is NANNY:
        return NannyServer(config, store, rng, shared, ANYWHERE, {}, NoCms()).controller
    file = pretending(smtp=SmtpServer("127.0.0.1", 25, "wall-e@example.net"))
    return WalleServer(config, "test", file, store, shared, rng, ANYWHERE).controller


@pytest.mark.parametrize("server", [CMS, NANNY, WALLE], ids=lambda server: server.name)
async def test_each_kind_that_a_controller_declares_is_saved_or_temporary(server: BackedUpServer) -> None:
    of_the_store = {k.FENCE, k.SESSION, k.COMMITS, k.MENDED, k.EPOCH, k.FORMAT, k.COMPACTION, k.RESTORE}
    declared = set(controller_of(server)._memory._tables)
    assert declared == {*server.kept, *server.temporary} - of_the_store
    assert set(server.temporary) - of_the_store == {"acting", "opening"}


@pytest.mark.parametrize("server", [CMS, NANNY, WALLE], ids=lambda server: server.name)
async def test_a_rehearsal_reads_each_kind_as_its_server_does(server: BackedUpServer) -> None:
    tables = controller_of(server)._memory._tables
    assert messages(server) == {kind: tables[kind].kind.message for kind in server.kept}


@pytest.mark.parametrize(
    ("name", "command"), [("hq", hq_serve), ("cms", cms_serve), ("nanny", nanny_serve), ("walle", walle_serve)]
)
def test_the_prefix_of_a_server_is_that_of_its_own_flag_and_variable(name: str, command: click.Command) -> None:
    [flag] = [param for param in command.params if param.name == "prefix"]
    assert isinstance(flag, click.Option)
    assert (flag.default, flag.envvar) == (SERVERS[name].prefix, f"{name.upper()}_PREFIX")
