"""Tokens of a front: what they hold, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated import tokens
from federated.merge import Cursor
from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest

WORDS = st.text(max_size=20)
CURSORS = st.builds(Cursor, WORDS, WORDS, st.none() | st.binary(max_size=20))


@given(st.dictionaries(WORDS, CURSORS, max_size=4))
def test_a_page_token_gives_back_its_cursors(cursors: dict[str, Cursor]) -> None:
    assert tokens.cursors_of(tokens.page_token("digest", cursors), "digest") == cursors


@given(st.dictionaries(WORDS, WORDS, max_size=4))
def test_a_resume_token_gives_back_its_vector(vector: dict[str, str]) -> None:
    assert tokens.tokens_of(tokens.resume_token("digest", vector), "digest") == vector


@given(st.text(max_size=80))
def test_whatever_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        tokens.tokens_of(text, "digest")


def test_a_token_of_another_filter_is_refused() -> None:
    one, two = (tokens.filter_digest(pb.InstanceFilter(service_id=[name])) for name in ("web", "db"))
    with pytest.raises(InvalidRequest, match="another filter"):
        tokens.tokens_of(tokens.resume_token(one, {}), two)


def test_a_page_token_is_no_resume_token() -> None:
    with pytest.raises(InvalidRequest, match="not a token that a front gave"):
        tokens.tokens_of(tokens.page_token("digest", {}), "digest")


def test_a_page_token_with_faulty_cursors_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        tokens.cursors_of(tokens._encode("p", "digest", {"east": ["", "", "no base64!"]}), "digest")
    with pytest.raises(InvalidRequest):
        tokens.cursors_of(tokens._encode("p", "digest", {"east": [1, 2, 3]}), "digest")
