"""The campaign against a replica that asks who calls: nobody gets in, or further, than they may."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import grpc

from hqpb.v1 import service_pb2 as pb
from tests.fuzz import http, requests
from tests.fuzz.callers import KEEPER, MARK, SECRET, Caller
from tests.fuzz.campaign import Report, asked_over_http, over_http, tokens, until
from tests.fuzz.forged import Forger, Proof
from tests.fuzz.grpc_call import GrpcAttack, exchange
from tests.fuzz.guarded import Guarded, broken
from tests.fuzz.target import Target
from tests.fuzz.verdict import Got, is_kept_out
from tests.support.secured import Caller as Calling
from tests.support.secured import secure_channel
from tests.support.token_issuer import bearer

_WORKERS: Final = 6
_PLAUSIBLE: Final = 0.6
_REREAD_S: Final = 1.2  # a little longer than the replica takes to look at its files again
_PAUSE_S: Final = 0.02


class Siege:
    """Attacks one guarded replica until the time is up or the first few faults are found.

    Attributes:
        proofs: how many were brought, by how they were made.
        kept: calls of somebody who may, all of which were answered.
        spoiled_files: how often a file of security was one that nobody can use.
    """

    def __init__(self, guarded: Guarded, target: Target, seed: int) -> None:
        self._guarded, self._target = guarded, target
        self._known = requests.Known(plausible_share=_PLAUSIBLE)
        self.report = Report(seed)
        self.proofs: Counter[str] = Counter()
        self.kept = self.spoiled_files = 0

    async def run(self, duration_s: float) -> Report:
        """The report."""
        guarded, target = self._guarded, self._target
        async with AsyncExitStack() as stack:
            keeper = await stack.enter_async_context(guarded.keeper(target.grpc))
            await guarded.populate(keeper)
            self._known.tokens = await tokens(keeper.instances, (bearer(guarded.token(KEEPER)),))
            before = await guarded.out_of_reach(keeper)
            plain = await stack.enter_async_context(secure_channel(target.grpc, guarded.files.authority))
            certified = await stack.enter_async_context(guarded.channels(target.certified))
            began = time.monotonic()
            works = [self._work(n, plain, certified) for n in range(_WORKERS)]
            works += [self._somebody_who_may(keeper), self._sabotage(random.Random(self.report.seed))]
            await until(began + duration_s, self.report, *works)
            self.report.seconds = time.monotonic() - began
            if target.is_alive() and await guarded.out_of_reach(keeper) != before:
                self.report.faults.append("an instance out of everybody's reach was changed")
        return self.report

    def _work(
        self, number: int, plain: grpc.aio.Channel, certified: list[tuple[grpc.aio.Channel, Caller | None]]
    ) -> AsyncIterator[None]:
        rng = random.Random(f"{self.report.seed}-{number}")
        forger = self._guarded.forger(rng)
        return self._over_http(rng, forger) if number % 2 else self._over_grpc(rng, forger, plain, certified)

    async def _over_http(self, rng: random.Random, forger: Forger) -> AsyncIterator[None]:
        host, _, port = self._target.http.partition(":")
        tls = self._guarded.tls
        while True:
            proof = self._proof(forger)
            made = http.attack(rng, self._known).authorized(proof.values)
            got = await over_http(made, host, int(port), tls)
            asked, is_open = asked_over_http(made), made.is_open
            self.report.note(asked, got, "" if is_open else _trespass(proof, asked.method, got))
            yield

    async def _over_grpc(
        self,
        rng: random.Random,
        forger: Forger,
        plain: grpc.aio.Channel,
        certified: list[tuple[grpc.aio.Channel, Caller | None]],
    ) -> AsyncIterator[None]:
        while True:
            proof, made, channel = self._proof(forger), GrpcAttack.made(rng, self._known), plain
            if rng.random() < 0.3:  # where a token is brought as well, it says who calls
                channel, shown = rng.choice(certified)
                proof = proof if proof.values else Proof((), shown, "certificate")
            if all(32 <= byte < 127 for value in proof.values for byte in value):  # gRPC sends nothing else
                made = _authorized(made, proof)
                got = await exchange(channel, made)
                self.report.note(made.asked, got, _trespass(proof, made.asked.method, got))
            yield

    def _proof(self, forger: Forger) -> Proof:
        proof = forger.proof()
        self.proofs[proof.kind] += 1
        return proof

    async def _somebody_who_may(self, keeper: Calling) -> AsyncIterator[None]:
        while True:
            code, words = await keeper.refusal("GetInstance", pb.GetInstanceRequest(id="vault-1"))
            if code != "OK":
                self.report.faults.append(f"somebody who may was refused: {code}: {words}")
            self.kept += 1
            await asyncio.sleep(_PAUSE_S)
            yield

    async def _sabotage(self, rng: random.Random) -> AsyncIterator[None]:
        files = self._guarded.files
        paths = {"policy": files.policy, "jwks": files.issuer.jwks, "tls-cert": files.server.cert}
        while True:
            name = rng.choice(tuple(paths))
            good = paths[name].read_bytes()
            _put(paths[name], broken(rng, name, good))
            self.spoiled_files += 1
            await asyncio.sleep(_REREAD_S)
            _put(paths[name], good)
            yield


def _put(path: Path, contents: bytes) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(contents)
    beside.replace(path)


def _authorized(made: GrpcAttack, proof: Proof) -> GrpcAttack:
    brought = tuple(("authorization", value.decode()) for value in proof.values)
    others = tuple(entry for entry in made.metadata if entry[0] != "authorization")
    return replace(made, metadata=(*others, *brought))


def _trespass(proof: Proof, call: str, got: Got) -> str:
    """What this caller got that it must not; empty: nothing."""
    who = proof.caller.name if proof.caller is not None else "nobody"
    caller = proof.caller
    if caller is None and not is_kept_out(got):
        return f"let in with {proof.kind}"
    if caller is not None and call and caller.may_never(call) and not is_kept_out(got):
        return f"{who} may never call {call}"
    if MARK.encode() in got.body and not (caller is not None and caller.sees_all):
        return f"{who} was shown an instance out of reach"
    if SECRET.encode() in got.body and not (caller is not None and caller.may_hold_secrets(call)):
        return f"{who} was shown a secret descriptor"
    return ""
