"""Tokens of a gateway: what they hold, and which texts are refused as tokens."""

from __future__ import annotations

import base64
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated.encoded import continuation
from federated.encoded.merge import Cursor
from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest

NAMES = st.from_regex(r"[A-Za-z0-9._:@-]{1,20}", fullmatch=True)
WORDS = st.text(st.characters(max_codepoint=127), max_size=20)
CURSORS = st.builds(Cursor, WORDS, WORDS, st.none())
JUNK = st.recursive(st.none() | st.text(max_size=9) | st.integers(), lambda inner: st.lists(inner, max_size=4))
SURROGATE = "\ud800"
LATE = pb.Source(cluster="east")
LATE.staleness.seconds = 1 << 60  # no duration in JSON


@given(st.dictionaries(NAMES, CURSORS, max_size=4), st.booleans())
def test_a_page_token_gives_back_its_cursors(cursors: dict[str, Cursor], are_done: bool) -> None:
    if are_done:
        cursors = {n: c._replace(done=pb.Source(cluster=n).SerializeToString()) for n, c in cursors.items()}
    assert continuation.cursors_of(continuation.page_token("digest", cursors), "digest") == cursors


@given(st.dictionaries(NAMES, WORDS, max_size=4))
def test_a_resume_token_gives_back_its_vector(vector: dict[str, str]) -> None:
    assert continuation.tokens_of(continuation.resume_token("digest", vector), "digest") == vector


@given(st.text(max_size=80))
def test_any_text_that_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        continuation.tokens_of(text, "digest")


def test_a_token_of_another_filter_is_refused() -> None:
    one, two = (continuation.filter_digest(pb.InstanceFilter(service_id=[name])) for name in ("web", "db"))
    with pytest.raises(InvalidRequest, match="another filter"):
        continuation.tokens_of(continuation.resume_token(one, {}), two)


def test_a_filter_with_more_values_than_a_location_takes_is_refused() -> None:
    continuation.filter_digest(pb.InstanceFilter(service_id=["web"] * 10_000))
    with pytest.raises(InvalidRequest, match=r"filter\.service_id: 10001 values are too many"):
        continuation.filter_digest(pb.InstanceFilter(service_id=["web"] * 10_001))


def test_a_page_token_is_refused_as_a_resume_token() -> None:
    with pytest.raises(InvalidRequest, match="not a token from a federation gateway"):
        continuation.tokens_of(continuation.page_token("digest", {}), "digest")


def test_a_page_token_with_faulty_cursors_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        continuation.cursors_of(continuation._encode("p", "digest", {"east": ["", "", "no base64!"]}), "digest")
    with pytest.raises(InvalidRequest):
        continuation.cursors_of(continuation._encode("p", "digest", {"east": [1, 2, 3]}), "digest")


@pytest.mark.parametrize(
    "entry",
    [
        [SURROGATE, "", None],
        ["", SURROGATE, None],
        *(["", "", base64.b64encode(done).decode()] for done in (b"\xff", b"", LATE.SerializeToString())),
    ],
)
def test_a_page_token_with_undecodable_cursors_is_refused(entry: list[object]) -> None:
    with pytest.raises(InvalidRequest):
        continuation.cursors_of(continuation._encode("p", "digest", {"east": entry}), "digest")


@pytest.mark.parametrize("vector", [{"east": SURROGATE}, {SURROGATE: ""}, {"no name": ""}, {"": ""}])
def test_a_resume_token_with_an_impossible_location_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        continuation.tokens_of(continuation.resume_token("digest", vector), "digest")


def test_a_resume_token_names_no_more_locations_than_there_may_be() -> None:
    with pytest.raises(InvalidRequest):
        continuation.tokens_of(continuation.resume_token("digest", {f"l-{n}": "" for n in range(1_001)}), "digest")


@given(st.dictionaries(NAMES | st.just(SURROGATE), JUNK, max_size=3))
def test_a_forged_token_is_refused_or_can_be_sent_on(vector: dict[str, object]) -> None:
    with contextlib.suppress(InvalidRequest):
        for cursor in continuation.cursors_of(continuation._encode("p", "digest", vector), "digest").values():
            assert (cursor.token + cursor.after).encode() is not None
    with contextlib.suppress(InvalidRequest):
        for token in continuation.tokens_of(continuation._encode("w", "digest", vector), "digest").values():
            assert pb.WatchInstancesRequest(resume_token=token).SerializeToString() is not None
