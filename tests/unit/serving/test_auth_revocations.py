"""Lists of what was revoked, and how many streams end at once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from serving.auth.audit import Audit, LogSink
from serving.auth.gate import Authenticator
from serving.auth.policy import parse
from serving.auth.revocations import Revocations, parse_revoked
from serving.auth.watched_files import BadSecurity
from serving.calls.methods import Call
from serving.clock import ManualClock
from serving.errors import Unauthenticated
from serving.rights.access import Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import READ

MANY, FEW = 1_200, 5


def test_serials_are_read_however_they_are_written() -> None:
    found = parse_revoked(b'serials: ["03:AC:5C", "0003ac5d"]\ntokens: [a]\nsubjects: [ops/ada]')
    assert found == Revocations(frozenset("a"), frozenset({"ops/ada"}), frozenset({"3ac5c", "3ac5d"}))
    assert parse_revoked(b"") == Revocations()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"tokens: [", "not valid YAML"),
        (b"- a", "mapping with tokens, subjects, serials"),
        (b"jti: [a]", "jti: unknown key; there are tokens, subjects, serials"),
        (b"subject: [a]", r"subject: unknown key; did you mean subjects\?"),
        (b"serials: [1234]", 'serials: expected a list of strings; write numbers in quotes: \\["0123"\\]'),
        (b"tokens: a", "tokens: expected a list"),
        (b'tokens: [""]', "tokens: expected a list"),
    ],
)
def test_a_list_that_could_be_misread_is_refused_by_its_field(text: bytes, fault: str) -> None:
    with pytest.raises(BadSecurity, match=fault):
        parse_revoked(text)


def test_ids_of_tokens_and_serials_of_certificates_are_different_things() -> None:
    revoked = Revocations(tokens=frozenset({"1a"}), serials=frozenset({"2b"}))
    for kind, own, other in ((ProofKind.TOKEN, "1a", "2b"), (ProofKind.CERTIFICATE, "2b", "1a")):
        with pytest.raises(Unauthenticated, match=f"the {kind} of ann was revoked"):
            revoked.check(Identity("ann", kind, 0, id=own))
        revoked.check(Identity("ann", kind, 0, id=other))
        revoked.check(Identity("ann", kind, 0))


@pytest.mark.long
async def test_many_streams_end_over_a_minute_and_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.auth.gate._LEAST_ENDS_PER_S", 2.0 * FEW)  # as few as a test can look at each second
    clock = ManualClock()
    gate = Authenticator(
        parse(b"roles: {reader: [{identities: [ann, bob]}]}"), None, None, Audit(LogSink(), clock), clock
    )
    seconds: list[int] = []
    second = 0

    async def stream(name: str) -> None:
        identity = Identity(name, ProofKind.TOKEN, 4e9)
        call = Call()
        call.set_access(gate.access(identity, READ))
        try:
            async with gate.lease(call):
                await asyncio.Event().wait()
        except Unauthenticated:
            seconds.append(second)

    async with AsyncExitStack() as stack:
        tasks = [asyncio.create_task(stream(name)) for name in ["ann"] * MANY + ["bob"] * FEW]
        stack.callback(lambda: [task.cancel() for task in tasks])
        await asyncio.sleep(0)
        gate.use_revoked(Revocations(subjects=frozenset({"bob"})))
        gate.end_leases()
        for _ in range(3):
            await asyncio.sleep(0)
        assert seconds == [0] * FEW
        gate.use_revoked(Revocations(subjects=frozenset({"ann"})))
        while len(seconds) < MANY + FEW:
            second += 1
            gate.end_leases()
            for _ in range(3):
                await asyncio.sleep(0)
        assert second == 60
        assert max(map(seconds.count, range(1, 61))) == MANY / 60


@pytest.mark.parametrize(
    ("wide", "narrow", "includes"),
    [
        (None, ["web"], True),
        (["web"], None, False),
        (["web", "mail"], ["web"], True),
        (["web"], ["web", "mail"], False),
        (["w*"], ["web", "web-*"], True),
        (["web-*"], ["w*"], False),
        (["*"], ["w*b"], True),
    ],
)
def test_a_scope_includes_another_one_if_its_patterns_cover_it(
    wide: list[str] | None, narrow: list[str] | None, *, includes: bool
) -> None:
    one, other = (Patterns(words) if words else None for words in (wide, narrow))
    assert Scope(services=one).includes(Scope(services=other)) is includes
    assert Scope(nodes=one).includes(Scope(nodes=other)) is includes
    assert Scope(clusters=one).includes(Scope(clusters=other)) is includes
