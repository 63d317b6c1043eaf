"""Huffman-coded strings, judged by the library `hpack`."""

from __future__ import annotations

import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.huffman_table import decode_huffman
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.h2.huffman import HpackError, decode

ENCODER = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)


@given(st.binary(max_size=200))
def test_every_string_comes_back(text: bytes) -> None:
    assert decode(ENCODER.encode(text)) == text


def test_every_byte_is_decoded_alone_and_among_others() -> None:
    for byte in (bytes((symbol,)) for symbol in range(256)):
        assert [decode(ENCODER.encode(text)) for text in (byte, b"a" + byte * 9 + b"z")] == [
            byte,
            b"a" + byte * 9 + b"z",
        ]


@settings(max_examples=16 * settings().max_examples)
@given(st.binary(max_size=12))
def test_random_bytes_are_read_as_the_library_reads_them_or_refused(coded: bytes) -> None:
    try:
        found = decode(coded)
    except HpackError:
        return
    assert found == decode_huffman(coded)
    assert ENCODER.encode(found) == coded, "padded otherwise than with the fewest ones"


def test_a_long_string_comes_back_though_it_is_not_remembered() -> None:
    text = b"Bearer " + b"0123456789abcdef" * 500
    assert decode(ENCODER.encode(text)) == text


@pytest.mark.parametrize("coded", [b"\x3f\xff\xff\xff\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\xfc" * 3])
def test_the_end_of_string_code_is_refused(coded: bytes) -> None:
    with pytest.raises(HpackError):
        decode(coded)


@pytest.mark.parametrize("padding", [b"\xff", b"\xff\xff", b"\xff\xff\xff"])
def test_a_whole_byte_of_padding_is_refused(padding: bytes) -> None:
    with pytest.raises(HpackError, match="within a code"):
        decode(ENCODER.encode(b"abc") + padding)


@pytest.mark.parametrize("coded", [b"\x18", b"\x1e", b"\x1c"])
def test_padding_with_anything_but_ones_is_refused(coded: bytes) -> None:
    assert decode(b"\x1f") == b"a"
    with pytest.raises(HpackError, match="within a code"):
        decode(coded)


def test_an_empty_string_is_decoded() -> None:
    assert decode(b"") == b""
