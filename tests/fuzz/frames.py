"""`python -m tests.fuzz.frames --inputs 10000000 --seed 7`: HTTP/2, header blocks and HTTP/1.1, spoiled.

Each input is read whole and in pieces, which must mean the same; nothing may raise; the books must balance while a
driver answers; and header blocks must say what they say to the library `hpack`. Input N of a seed is always the same.
Exit code 1, and the smallest input, if anything was found.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Final, NamedTuple

import click
import hpack as library

from serving.h2.hpack import HpackDecoder
from serving.h2.huffman import HpackError
from tests.fuzz import sides, talk

_MOST: Final = 1 << 30
_POOL: Final = 300  # valid conversations of each kind, made once for a seed
_BATCH: Final = 2_000
_GARBAGE: Final = 50_000  # objects between collections, which would take a tenth of the time

Check = Callable[[bytes, int], None]


class Finding(NamedTuple):
    kind: str
    number: int
    seed: int
    what: str
    smallest: bytes


def check_server(said: bytes, seed: int) -> None:
    """Raises whatever is wrong with how a server reads this."""
    rng = Random(seed)
    assert sides.read(sides.server(), sides.pieces(rng, said)) == sides.read(sides.server(), [said]), "cut, it differs"
    sides.drive(sides.server(), sides.pieces(rng, said), rng)


def check_client(said: bytes, seed: int) -> None:
    """The same for a client with four calls under way."""
    rng = Random(seed)
    cut = sides.read(sides.client_with_calls(), sides.pieces(rng, said))
    assert cut == sides.read(sides.client_with_calls(), [said]), "cut, it differs"
    sides.drive(sides.client_with_calls(), sides.pieces(rng, said), rng)


def check_block(said: bytes, seed: int) -> None:
    """Header blocks, each behind its length: ours refuses, or says the same as the library, with the same table."""
    ours, theirs = HpackDecoder(), library.Decoder(_MOST)
    while said:
        block, said = said[1 : 1 + said[0]], said[1 + said[0] :]
        try:
            fields, _ = ours.decode(block, _MOST)
        except HpackError:
            return
        mine = [(name, value) for name, value, _, _ in fields]
        assert mine == [(bytes(n), bytes(v)) for n, v in theirs.decode(block, raw=True)], "not what the library reads"
        assert ours.table_bytes == theirs.header_table._current_size, "another table than the library's"


def check_http1(said: bytes, seed: int) -> None:
    """HTTP/1.1, in pieces; now and then byte by byte, and said once more on the same connection."""
    whole = sides.read_http1([said])
    assert sides.read_http1(sides.pieces(Random(seed), said)) == whole, "cut, it differs"
    if seed % 16 == 3:  # their numbers are 3, 7, 11, ...
        assert sides.read_http1(sides.spoken(said)) == whole, "byte by byte, it differs"
        twice = sides.read_http1([said + said])
        assert sides.read_http1([said, said]) == twice, "said again, it differs"


CHECKS: Final[dict[str, Check]] = {
    "server": check_server,
    "client": check_client,
    "block": check_block,
    "http1": check_http1,
}


class Maker:
    """Makes inputs; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self._seed = seed
        self._said = {
            name: [talk.Talk(rng, is_server=name == "client").frames() for _ in range(_POOL)]
            for name in ("server", "client")
        }
        self._http1 = [talk.http1(rng) for _ in range(_POOL)]

    def make(self, number: int) -> tuple[str, bytes]:
        """Which check, and its input."""
        rng = Random(self._seed << 40 | number)
        kind = ("server", "client", "block", "http1")[number % 4]
        if rng.random() < 0.02:
            return kind, rng.randbytes(rng.randrange(60))
        if kind == "block":
            blocks = [talk.spoiled_block(rng)[:255] for _ in range(rng.randrange(1, 4))]
            return kind, b"".join([bytes((len(block),)) + block for block in blocks])
        if kind == "http1":
            return kind, talk.spoiled_bytes(rng, rng.choice(self._http1))
        said = self._said[kind]
        return kind, talk.spoiled(rng, rng.choice(said), rng.choice(said))


def run(seed: int, numbers: range) -> list[Finding]:
    """Try these inputs; at most one finding of each sort."""
    maker, found = Maker(seed), dict[tuple[str, str], Finding]()
    for number in numbers:
        kind, said = maker.make(number)
        what = _wrong(kind, said, number)
        if what and (kind, what[:60]) not in found:
            found[kind, what[:60]] = Finding(kind, number, seed, what, smallest(kind, said, number, what))
    return [*found.values()]


def _wrong(kind: str, said: bytes, seed: int) -> str:
    try:
        CHECKS[kind](said, seed)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return ""


def smallest(kind: str, said: bytes, seed: int, what: str) -> bytes:
    """The input without all that can be left out while the same goes wrong."""
    size = len(said) // 2
    while size:
        at = 0
        while at < len(said):
            less = said[:at] + said[at + size :]
            if _wrong(kind, less, seed)[:60] == what[:60]:
                said = less
            else:
                at += size
        size //= 2
    return said


def _batches(inputs: int) -> Iterator[range]:
    for start in range(0, inputs, _BATCH):
        yield range(start, min(start + _BATCH, inputs))


@click.command()
@click.option("--inputs", type=int, default=100_000, show_default=True)
@click.option("--seed", type=int, default=None, help="The same inputs again.")
@click.option("--workers", type=int, default=2, show_default=True, help="Processes.")
def fuzz(inputs: int, seed: int | None, workers: int) -> None:
    """Feed the machines of HTTP/2, HPACK and HTTP/1.1 with spoiled conversations."""
    os.nice(10)
    seed = Random().randrange(1 << 31) if seed is None else seed
    print(f"seed {seed}: {inputs:,} inputs", flush=True)
    started, done, found = time.monotonic(), 0, list[Finding]()
    with ProcessPoolExecutor(workers, initializer=gc.set_threshold, initargs=(_GARBAGE,)) as pool:
        for batch, findings in zip(
            _batches(inputs), pool.map(run, itertools.repeat(seed), _batches(inputs)), strict=True
        ):
            done, found = batch.stop, found + findings
            if done % 100_000 == 0 or done == inputs:
                rate = done / (time.monotonic() - started)
                print(f"{done:,} inputs, {rate:,.0f}/s, {len(found)} findings", flush=True)
            if len(found) >= 10:
                break
    for one in found:
        print(f"{one.kind}, seed {one.seed}, input {one.number}: {one.what}\n  {one.smallest!r}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    fuzz()
