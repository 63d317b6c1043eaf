"""Measured costs of HQ: one file, made from the results of `make bench`."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

FILE = Path(__file__).with_name("costs.json")


class BadCosts(ValueError):
    """The file of costs cannot be used."""


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """Times in seconds of one core, sizes in bytes, unless said otherwise.

    Attributes:
        measured: when, on which commit and machine.
        lookup_s, listed_s: one FindInstances over gRPC, and each instance in its answer.
        secured_lookup_s, secured_listed_s: what TLS and tokens add to these.
        heartbeat_s, heard_s: one heartbeat in a batch at the replica that is sent it, and at each other one.
        change_s, followed_s: one status change, likewise.
        commit_s: what a change that is alone in its transaction costs more.
        event_s: one event to one watcher.
        wake_s: what a call costs more if nothing else was being done.
        idle, watch: shares of a core, without load, and for each connection with a watch.
        return_s: one watch that was cut and comes back, at the replica that takes it.
        handshake_s: of TLS.
        start_s, start_each_s: until a replica serves, and for each instance; restart_: with a checkpoint.
        instance_bytes: in a replica's memory, the encoded bytes (frame_bytes) included.
        watch_bytes, secured_watch_bytes: of a connection with a watch; with TLS.
        etcd_each_bytes: in etcd's database, for each instance; etcd_heartbeat_bytes, etcd_change_bytes: written.
        leader_s: without writes, when etcd's leader is lost.
        gateway_share: lookups per second of a federation gateway, as a share of a replica's.
    """

    measured: str
    lookup_s: float
    listed_s: float
    secured_lookup_s: float
    secured_listed_s: float
    heartbeat_s: float
    heard_s: float
    change_s: float
    followed_s: float
    commit_s: float
    event_s: float
    wake_s: float
    idle: float
    watch: float
    return_s: float
    handshake_s: float
    base_bytes: float
    instance_bytes: float
    frame_bytes: float
    watch_bytes: float
    secured_watch_bytes: float
    start_s: float
    start_each_s: float
    restart_s: float
    restart_each_s: float
    etcd_heartbeat_bytes: float
    etcd_change_bytes: float
    etcd_each_bytes: float
    changes_per_transaction: float
    leader_s: float
    gateway_share: float


def read_costs(file: Path = FILE) -> MeasuredCosts:
    """The measured costs of this version, or of a file that another machine made.

    Raises:
        BadCosts: it cannot be read, or lacks a cost.
    """
    try:
        given = json.loads(file.read_text())
    except OSError as error:
        raise BadCosts(
            f"--costs {file}: cannot be read: {error.strerror}: give a file that this user can read"
        ) from None
    except ValueError as error:
        raise BadCosts(f"--costs {file}: is not valid JSON: {error}") from error
    names = {field.name for field in fields(MeasuredCosts)}
    if not isinstance(given, dict) or (missing := names - given.keys()):
        lacking = f"lacks {', '.join(sorted(missing))}" if isinstance(given, dict) else "is not an object"
        raise BadCosts(f"--costs {file}: {lacking}: make it with `python -m tests.bench report`")
    return MeasuredCosts(**{name: given[name] for name in names})
