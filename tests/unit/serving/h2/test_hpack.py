"""Header blocks, judged by the library `hpack`, which knows nothing of ours."""

from __future__ import annotations

import random

import hpack as library
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.h2.hpack import HpackDecoder, encode
from serving.h2.huffman import HpackError
from tests.fuzz.talk import spoiled_block
from tests.support.h2_peer import Pairs

MOST = 1 << 30

# Few names and values, so that the table is used; some that fill it, and some that it cannot hold.
_NAMES = st.sampled_from([b":path", b"x-trace", b"authorization", b"grpc-timeout", b"n" * 60, b"cookie", b"a"])
_VALUES = st.one_of(
    st.sampled_from([b"", b"/", b"Bearer one", b"Bearer two", b"v" * 900, b"v" * 5_000]), st.binary(max_size=40)
)
_LISTS = st.lists(st.tuples(_NAMES, _VALUES, st.booleans()), max_size=12)
_BLOCKS = st.lists(st.tuples(_LISTS, st.booleans(), st.none() | st.integers(0, 4_096)), min_size=1, max_size=8)


def decoded(decoder: HpackDecoder, block: bytes) -> Pairs:
    fields, size = decoder.decode(block, MOST)
    assert size == sum(len(name) + len(value) + 32 for name, value, _, _ in fields)
    return [(name, value) for name, value, _, _ in fields]


@given(_BLOCKS)
def test_whatever_the_library_encodes_is_read_as_it_was(
    blocks: list[tuple[list[tuple[bytes, bytes, bool]], bool, int | None]],
) -> None:
    theirs, ours = library.Encoder(), HpackDecoder()
    for fields, is_huffman, table_bytes in blocks:
        if table_bytes is not None:
            theirs.header_table_size = table_bytes
        block = theirs.encode(fields, huffman=is_huffman)
        assert decoded(ours, block) == [(name, value) for name, value, _ in fields]
        assert ours.table_bytes == theirs.header_table._current_size


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=30), st.binary(max_size=300)), max_size=20))
def test_blocks_that_we_encode_can_be_read_without_a_table(pairs: Pairs) -> None:
    theirs, ours = library.Decoder(MOST), HpackDecoder()
    block = encode(pairs)
    assert [(bytes(n), bytes(v)) for n, v in theirs.decode(block, raw=True)] == pairs == decoded(ours, block)
    assert theirs.header_table._current_size == ours.table_bytes == 0


@settings(max_examples=12 * settings().max_examples)
@given(st.integers(0, MOST))
def test_random_blocks_are_read_as_the_library_reads_them_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    theirs, ours = library.Decoder(MOST), HpackDecoder()
    for _ in range(6):
        block = spoiled_block(rng)
        try:
            found = decoded(ours, block)
        except HpackError:
            return
        assert found == [(bytes(n), bytes(v)) for n, v in theirs.decode(block, raw=True)], block.hex()
        assert ours.table_bytes == theirs.header_table._current_size, block.hex()


@settings(max_examples=6 * settings().max_examples)
@given(st.binary(max_size=60))
def test_random_bytes_raise_nothing_but_our_error(block: bytes) -> None:
    try:
        found = decoded(HpackDecoder(), block)
    except HpackError:
        return
    assert found == [(bytes(n), bytes(v)) for n, v in library.Decoder(MOST).decode(block, raw=True)]


def test_a_field_that_changes_with_each_call_evicts_the_oldest_entry() -> None:
    theirs, ours = library.Encoder(), HpackDecoder()
    for number in range(1_000):
        pairs = [(b"grpc-timeout", b"%dm" % number), (b"x-trace-id", b"%032x" % number), (b"authorization", b"same")]
        assert decoded(ours, theirs.encode(pairs)) == pairs
        assert ours.table_bytes <= 4_096


def test_a_field_larger_than_the_table_empties_it_and_is_read_all_the_same() -> None:
    ours = HpackDecoder()
    decoded(ours, b"\x40\x01a\x01b")
    assert ours.table_bytes == 34
    long = library.Encoder().encode([(b"a", b"v" * 5_000)], huffman=False)
    assert decoded(ours, long) == [(b"a", b"v" * 5_000)]
    assert ours.table_bytes == 0
    with pytest.raises(HpackError, match="not in the table"):
        decoded(ours, b"\xbe")


def test_a_field_may_refer_to_the_entry_that_it_evicts() -> None:
    theirs = library.Encoder()
    theirs.header_table_size = 80
    ours = HpackDecoder()
    decoded(ours, theirs.encode([(b"x-name", b"1" * 30)], huffman=False))
    assert decoded(ours, theirs.encode([(b"x-name", b"2" * 30)], huffman=False)) == [(b"x-name", b"2" * 30)]
    assert ours.table_bytes == 68


def test_fields_that_must_never_be_indexed_do_not_enter_the_table() -> None:
    ours = HpackDecoder()
    never = library.Encoder().encode([(b"authorization", b"secret", True), (b"x-own", b"secret", True)])
    assert decoded(ours, never) == [(b"authorization", b"secret"), (b"x-own", b"secret")]
    assert ours.table_bytes == 0


@pytest.mark.parametrize("block", [b"\x20", b"\x20\x3f\xe1\x1f", b"\x3f\xe1\x1f"])
def test_the_table_may_be_resized_at_the_beginning_of_a_block(block: bytes) -> None:
    ours = HpackDecoder()
    decoded(ours, b"\x40\x01a\x01b")
    assert decoded(ours, block + b"\x82") == [(b":method", b"GET")]
    assert ours.table_bytes == (0 if block[0] == 0x20 else 34)


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (b"\x82\x20", "after a field"),
        (b"\x3f\xe2\x1f", "4097 bytes"),
        (b"\x80", "index 0"),
        (b"\xbe", "not in the table"),
        (b"\x7f\x00\x01a", "not in the table"),
        (b"\xff\xff\xff\xff\xff\xff\x01", "too large"),
        (b"\xff\x80\x80\x80\x80\x00", "too large"),
        (b"\x00\x7f\xff\xff\xff\x7f", "within"),
        (b"\x00\x05abc", "within"),
        (b"\x40\x01a", "within"),
        (b"\xff", "within"),
    ],
)
def test_a_malformed_block_is_refused_with_the_reason(block: bytes, why: str) -> None:
    with pytest.raises(HpackError, match=why):
        decoded(HpackDecoder(), block)


def test_a_bomb_of_headers_is_counted_and_not_kept() -> None:
    ours = HpackDecoder()
    decoded(ours, b"\x40\x01a\x7f\xa1\x1e" + b"v" * 4_000)
    fields, size = ours.decode(b"\xbe" * 16_000, 32 * 1024)
    assert len(fields) == 8
    assert size == 16_000 * 4_033


def test_headers_left_out_of_a_large_list_still_enter_the_hpack_table() -> None:
    theirs, ours = library.Encoder(), HpackDecoder()
    pairs = [(b"x-%d" % number, b"v" * 50) for number in range(20)]
    fields, _ = ours.decode(theirs.encode(pairs), 500)
    assert len(fields) < 10
    assert decoded(ours, theirs.encode(pairs)) == pairs
