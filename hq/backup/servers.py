"""Which servers' records a backup can hold. The other servers' kinds are plain data here: HQ imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from hq import keys as k

_OF_THE_STORE: Final = (k.FENCE, k.SESSION, k.COMMITS, k.MENDED, k.EPOCH, k.FORMAT, k.COMPACTION, k.RESTORE)


class BackedUpServer(NamedTuple):
    """A server whose records are below a prefix of its own.

    Attributes:
        name: as `--of` and the header of a backup have it.
        kept: the kinds of records that a backup holds.
        temporary: all other kinds that may be there: of running processes, or of one epoch.
        afterwards: what it does after a restore, for operators.
        messages: the class of the records of each kept kind, as "package.module.Class"; of HQ none.
    """

    name: str
    title: str
    prefix: str
    kept: tuple[str, ...]
    temporary: tuple[str, ...]
    afterwards: str
    messages: Mapping[str, str]


def _controller(
    name: str,
    title: str,
    package: str,
    kinds: Mapping[str, str],
    *,
    events: str,
    reconcilers: tuple[str, ...],
    afterwards: str,
) -> BackedUpServer:
    """A server built on the controllers' kit (control/), which adds kinds of records of its own."""
    inbox, kit = f"events.{events}", "controlpb.v1.control_pb2"
    messages = {kind: f"{package}.{message}" for kind, message in kinds.items()}
    messages |= {f"failures.{reconciler}": f"{kit}.Failure" for reconciler in (inbox, "audit", *reconcilers)}
    messages |= {inbox: f"{kit}.Inbox", "freeze": f"{kit}.Freeze", "audit": f"{kit}.KeptLine"}
    temporary = ("acting", "opening", *_OF_THE_STORE)
    return BackedUpServer(name, title, f"/{name}/v1/", tuple(messages), temporary, afterwards, messages)


HQ: Final = BackedUpServer(
    "hq",
    "HQ",
    k.DEFAULT_PREFIX,
    (k.SPEC, k.SECRETS, k.STATUS, k.OPS),
    (*k.PER_REPLICA, k.SILENCE, *_OF_THE_STORE),
    "versions and tokens from before are refused, watches start over, and agents follow the restored specifications at "
    "once, without batches",
    {},
)
CMS: Final = _controller(
    "cms",
    "the CMS",
    "cmspb.storage.v1.ledger_pb2",
    {
        "task": "Task",
        "budget": "Budget",
        "ended": "Ended",
        "ledger": "Ledger",
        "declared": "Declared",
        "windows": "Windows",
    },
    events="order",
    reconcilers=("decide",),
    afterwards="it grants nothing until each --task-issuer has declared its running work, or you compared `hqctl "
    "disruptions` with what is under way and ran `hqctl disruptions open`",
)
NANNY: Final = _controller(
    "nanny",
    "Nanny",
    "nannypb.v1.records_pb2",
    {
        "service": "ServiceRecord",
        "snapshot": "SnapshotRecord",
        "chunk": "ChunkRecord",
        "action": "ActionRecord",
        "target": "InstanceTargetRecord",
        "history": "HistoryRecord",
        "rollout": "RolloutRecord",
    },
    events="service",
    reconcilers=("work", "cms", "contents"),
    afterwards="it rolls nothing out until you looked at each service's target and ran `nanny control open`; then it "
    "pauses the services whose targets are older than what HQ has",
)
WALLE: Final = _controller(
    "walle",
    "Wall-E",
    "wallepb.v1",
    {
        "host": "host_pb2.Host",
        "machine": "host_pb2.Machine",
        "project": "project_pb2.Project",
        "fuse": "project_pb2.Fuse",
        "scenario": "project_pb2.Scenario",
        "scenariohosts": "project_pb2.ScenarioHosts",
        "defaultcms": "project_pb2.DefaultCmsTasks",
        "ledgertime": "project_pb2.LedgerTime",
        "restored": "project_pb2.Restored",
        "notice": "project_pb2.NoticeRecord",
        "word": "project_pb2.InstallationWord",
    },
    events="order",
    reconcilers=(
        *("host", "dns", "scenario", "garbage", "ledgertime"),
        *("notices", "noticesmail", "noticeswebhook", "noticesheard", "noticesold"),
    ),
    afterwards="all its fuses are tripped; hosts with unknown CMS tasks are busy until `walle projects release-tasks`; "
    "people's requests wait for `walle open-epoch`",
)
SERVERS: Final = {server.name: server for server in (HQ, CMS, NANNY, WALLE)}
