"""What the reading calls refuse before they look anything up."""

from __future__ import annotations

from typing import cast

import pytest

from hq.api.lookups import Lookups, parsed_find, parsed_get
from hq.registry.registry import Registry
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import InvalidRequest


async def test_a_consistency_that_this_replica_does_not_know_is_refused_rather_than_taken_for_none() -> None:
    read = pb.ReadOptions.FromString(b"\x18\x09")
    count = Lookups(cast("Registry", None), 0).count(pb.CountInstancesRequest(read=read), Call())
    with pytest.raises(InvalidRequest, match=r"^read\.consistency: 9 is not a valid ReadConsistency"):
        await count
    for parse in (
        lambda: parsed_get(pb.GetInstanceRequest(id="a", read=read)),
        lambda: parsed_find(pb.FindInstancesRequest(read=read)),
    ):
        with pytest.raises(InvalidRequest, match=r"^read\.consistency: 9 is not a valid ReadConsistency"):
            parse()
