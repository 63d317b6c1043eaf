"""The options of a read: which locations, how fresh, what to do without an answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from federated.encoded import scan
from federated.errors import LocationsSilent, NoAnswer
from federated.locations.channel import Metadata
from federated.locations.locations import Locations
from federated.locations.plan import select_locations
from hqapi.requests import CLUSTER_HEADER, requested_cluster
from hqpb.v1 import service_pb2
from serving.auth.audiences import audiences_of, how_to_sign
from serving.calls.current import forwarded_metadata
from serving.calls.methods import Call
from serving.clock import Clock
from serving.errors import StartOver, Unauthenticated, invalid
from serving.rights.access import UNCHECKED, Access

OF_REPLICAS: Final = "hq"


class NoSuchEpoch(StartOver):
    """No location is at the epoch that the caller named."""

    reason = "EPOCH_CHANGED"


@dataclass(frozen=True, slots=True)
class Asking:
    """The options of a read, worked out.

    Attributes:
        names: the locations to ask.
        all_required: an answer that lacks one of them is an error.
        last_good: an old answer is acceptable for a silent location.
        demands: by location, the `read` options that only this location gets.
        deadline: of the caller, on the injected clock; None: it set none.
        token: the caller's authorization header, if it sent one.
        metadata: sent along to the locations: that header, the request id and the trace context.
        access: what the caller may read, as the gateway's own policy says; the locations check for themselves.
    """

    names: Sequence[str]
    all_required: bool
    last_good: bool
    demands: Mapping[str, service_pb2.ReadOptions]
    deadline: float | None
    clock: Clock
    token: Metadata = ()
    metadata: Metadata = ()
    access: Access = UNCHECKED

    def left_s(self) -> float | None:
        """How long the caller still waits."""
        return None if self.deadline is None else self.deadline - self.clock.now()

    def demand(self, name: str, number: int) -> bytes:
        """The demands on this location only, encoded as field `number` of its request."""
        demanded = self.demands.get(name)
        return scan.delimited_field(number, demanded.SerializeToString()) if demanded else b""

    def needs_store(self, name: str, read: service_pb2.ReadOptions) -> bool:
        """Whether the answer of this location may have to wait for its store."""
        return name in self.demands or bool(read.consistency)

    def asker(self) -> bytes:
        """The cache partition of the caller: without authentication at the gateway, each token has its own."""
        if self.access.is_checked or not self.token:
            return b""
        return hashlib.blake2b(repr(self.token).encode(), digest_size=32).digest()

    def is_whole(self, name: str, where: service_pb2.InstanceFilter) -> bool:
        """Whether a location's answer is the same for all callers who share its place in the cache.

        An answer leaves out what its caller may not read, and any caller may ask for ids.
        """
        return bool(self.asker()) or self.access.within(name).proves(where.service_id, where.node_name)

    def may_be_old(self, name: str, read: service_pb2.ReadOptions, where: service_pb2.InstanceFilter) -> bool:
        """Whether a location's last good answer will do and the caller may read it, which only a gateway checks."""
        wanted = self.last_good and name not in self.demands and not read.consistency
        return wanted and self.access.within(name).proves(where.service_id, where.node_name)

    def check(self, silent: Mapping[str, NoAnswer], *, anybody: bool) -> None:
        """Raises LocationsSilent: a required location is silent, or all are (`anybody` is False)."""
        if silent and (self.all_required or not anybody):
            raise LocationsSilent(silent)


def asking(
    locations: Locations,
    read: service_pb2.ReadOptions,
    clusters: Sequence[str],
    call: Call,
    clock: Clock,
) -> Asking:
    """Work out the options. Raises InvalidRequest, NoSuchEpoch."""
    names = locations_to_ask(locations, clusters, call)
    demands = _demands(locations, names, read)
    wanted = read.require_all_locations, read.allow_last_good
    token = caller_token(call)
    return Asking(
        names, *wanted, demands, call.deadline, clock, token, (*forwarded_metadata(call), *token), call.access
    )


def caller_token(call: Call) -> Metadata:
    """Return the caller's token, which is passed on unchanged.

    Raises Unauthenticated: the header holds no token, or a token that replicas would refuse.
    """
    tokens = call.all_headers("authorization")
    if len(tokens) > 1:
        raise Unauthenticated("there are several authorization headers: send one")
    if not all(token.isascii() and token.isprintable() for token in tokens):  # gRPC would not send it
        raise Unauthenticated("the authorization header holds no token")
    for token in tokens:
        if OF_REPLICAS not in audiences_of(token.partition(" ")[2]):
            raise Unauthenticated(
                "the token is not for the replicas, to which this gateway would pass it on: "
                f"{how_to_sign(('federated', OF_REPLICAS))}"
            )
    return tuple([("authorization", token) for token in tokens])


def caller_metadata(call: Call) -> Metadata:
    """Metadata of requests made for this call: request id, trace context, its token. Raises Unauthenticated."""
    return (*forwarded_metadata(call), *caller_token(call))


def locations_to_ask(locations: Locations, clusters: Sequence[str], call: Call) -> list[str]:
    """The locations to ask: all if the caller named none. Raises InvalidRequest."""
    names = select_locations(locations.by_name, clusters, "filter.cluster")
    requested = requested_cluster(call)
    if not requested:
        return names
    select_locations(locations.by_name, [requested], CLUSTER_HEADER)
    if requested not in names:
        raise invalid("filter.cluster", f"does not contain {requested}, which the header {CLUSTER_HEADER} names")
    return [requested]


def _demands(
    locations: Locations, names: Sequence[str], read: service_pb2.ReadOptions
) -> dict[str, service_pb2.ReadOptions]:
    """Demand the version of one location only, that of its epoch or the only one asked: elsewhere it has no meaning."""
    if not read.min_version and not read.epoch:
        return {}
    demanded = service_pb2.ReadOptions(min_version=read.min_version, epoch=read.epoch)
    if len(names) == 1:
        return {names[0]: demanded}
    if not read.epoch:
        text = "a version needs its epoch across several locations: add the epoch, or name one cluster"
        raise invalid("read.min_version", text)
    found = [
        n for n in names if (source := locations.by_name[n].health.source) is not None and source.epoch == read.epoch
    ]
    if not found:
        raise NoSuchEpoch(f"no location is at epoch {read.epoch[:100]}: read again and use the new versions")
    return {found[0]: demanded}
