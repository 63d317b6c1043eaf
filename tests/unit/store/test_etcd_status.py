"""The status of a member of etcd, as HQ reads it."""

from __future__ import annotations

import pytest
from aetcd import rpc

from store.etcd_rpc import member_status

NOSPACE = "memberID:10276657743932975437 alarm:NOSPACE "


def test_the_quota_is_read_from_newer_etcds_though_our_stubs_are_older() -> None:
    old = rpc.StatusResponse(version="3.5.9", dbSize=20480)
    assert member_status("e1", old).quota_bytes == 0
    new = rpc.StatusResponse.FromString(old.SerializeToString() + b"\x5a\x033.6" + b"\x60\x80\x80\x80\x80\x08")
    assert member_status("e1", new).quota_bytes == 2 << 30


@pytest.mark.parametrize(
    ("errors", "full", "error"),
    [([], False, ""), ([NOSPACE], True, ""), ([NOSPACE, "etcdserver: no leader"], True, "etcdserver: no leader")],
)
def test_a_full_member_is_marked_full_and_has_no_error_for_it(errors: list[str], full: bool, error: str) -> None:
    told = member_status("e1", rpc.StatusResponse(version="3.5.9", errors=errors))
    assert (told.full, told.error) == (full, error)
