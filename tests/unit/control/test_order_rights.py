"""Stored orders: both the rights of their author when they were given and its rights now are checked."""

from __future__ import annotations

import pytest

from control import Refused, UnreadableEvent
from control.order_rights import BY_STORED_GRANTS, OrderRights
from nanny.reach import ORDER, OWNERS
from nanny.records.handler import handler
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ServiceEvent
from serving.auth.audit import Audit, LogSink
from serving.auth.gate import Authenticator
from serving.auth.policy import parse
from serving.auth.revocations import Revocations
from serving.clock import SystemClock
from serving.rights.access import Access, Identity, ProofKind
from serving.rights.stored import encode_access
from tests.nanny.orders import Dictionary

_POLICY = "roles: {{uploader: [{{identities: [ann], services: [{}]}}]}}"


def gate(services: str) -> Authenticator:
    """An authenticator whose policy makes ann an uploader of `services`."""
    clock = SystemClock()
    return Authenticator(parse(_POLICY.format(services).encode()), None, None, Audit(LogSink(), clock), clock)


def order_of_ann(services: str) -> str:
    """What is stored with an order that ann gives as an uploader of `services`."""
    identity = Identity("ann", ProofKind.TOKEN, 0.0)
    return encode_access(gate(services).access(identity, ORDER))


def on(service: str, given: str, rights: OrderRights) -> Refused | None:
    return rights.refusal(given, ORDER, lambda access: access.check_service(service, OWNERS))


def test_an_order_takes_effect_if_its_author_still_has_the_rights() -> None:
    assert on("web", order_of_ann("web"), OrderRights(gate("web, mail"))) is None
    assert on("web", order_of_ann("web"), BY_STORED_GRANTS) is None
    assert on("web", "", OrderRights(gate("mail"))) is None, "nobody was authenticated when it was given"


def test_rights_gained_after_an_order_do_not_make_it_take_effect() -> None:
    refused = on("mail", order_of_ann("web"), OrderRights(gate("web, mail")))
    assert refused is not None
    assert refused.code == "PERMISSION_DENIED"


def test_rights_that_were_withdrawn_since_are_named_as_the_reason() -> None:
    refused = on("web", order_of_ann("web"), OrderRights(gate("mail")))
    assert refused is not None
    assert "the rights of its author were withdrawn since it was ordered: ann is not authorized" in str(refused)
    nobody = gate("web")
    nobody.use(parse(b"roles: {reader: [{identities: [ann]}]}"))
    assert "requires the role" in str(on("web", order_of_ann("web"), OrderRights(nobody)))


def test_an_order_of_a_revoked_author_does_not_take_effect() -> None:
    now = gate("web")
    now.use_revoked(Revocations(subjects=frozenset(["ann"])))
    assert "ann was revoked" in str(on("web", order_of_ann("web"), OrderRights(now)))


@pytest.mark.parametrize(("kind", "listed"), [(ProofKind.TOKEN, "tokens"), (ProofKind.CERTIFICATE, "serials")])
def test_an_order_given_with_a_proof_that_was_revoked_since_does_not_take_effect(kind: ProofKind, listed: str) -> None:
    """A stolen token: its waiting orders are refused, those that ann gave with another one are not."""
    now = gate("web")
    stolen, own = (encode_access(now.access(Identity("ann", kind, 0.0, id=proof), ORDER)) for proof in ("5d41", "7c22"))
    now.use_revoked(Revocations(**{listed: frozenset({"5d41"})}))
    assert f"the {kind} of ann was revoked" in str(on("web", stolen, OrderRights(now)))
    assert on("web", own, OrderRights(now)) is None


def test_an_order_with_unknown_grants_waits_for_a_newer_version() -> None:
    with pytest.raises(UnreadableEvent, match="grants that this version does not know: upgrade it"):
        on("web", '{"name": "ann", "grants": {"uploader": [{"racks": ["r1"]}]}}', OrderRights(gate("web")))


def test_an_unauthenticated_access_is_stored_as_an_empty_text() -> None:
    assert encode_access(Access(None, ORDER, {}, is_checked=False)) == ""


def test_nanny_carries_out_no_order_whose_author_has_lost_the_service_since() -> None:
    change = Dictionary()
    handle = handler(lambda: 1_000, OrderRights(gate("mail")))
    created = ServiceEvent(created=pb.InfoAttributes(), access=order_of_ann("web"))
    with pytest.raises(Refused, match="were withdrawn since it was ordered") as refused:
        handle(change, "web", created)  # type: ignore[arg-type]
    assert (refused.value.code, change.kept) == ("PERMISSION_DENIED", {})
    with pytest.raises(Refused, match="requires the role"):  # only managers pause
        handle(change, "web", ServiceEvent(paused=True, access=order_of_ann("web")))  # type: ignore[arg-type]
    handler(lambda: 1_000, OrderRights(gate("web")))(change, "web", created)  # type: ignore[arg-type]
    assert change.kept


def test_events_of_nanny_itself_need_no_rights() -> None:
    change = Dictionary()
    handler(lambda: 1_000, OrderRights(gate("mail")))(change, "web", ServiceEvent(created=pb.InfoAttributes()))  # type: ignore[arg-type]
    assert change.kept
