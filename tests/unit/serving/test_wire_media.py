"""Which encodings an exchange over HTTP speaks."""

from __future__ import annotations

import pytest

from serving.encoding.media import Media, accepts_gzip, by_quality, is_gzip
from serving.protocol_errors import UnsupportedEncoding, UnsupportedMediaType

JSON, PROTO = "application/json", "application/proto"


@pytest.mark.parametrize(
    ("content_type", "accept", "answer"),
    [
        (JSON, None, JSON),
        (PROTO, None, PROTO),
        ("application/x-protobuf", None, "application/x-protobuf"),
        (JSON, "*/*", JSON),
        (PROTO, "text/html, */*", PROTO),
        (JSON, PROTO, PROTO),
        (PROTO, "application/json; charset=utf-8", JSON),
        (JSON, f"{JSON};q=0.1, {PROTO}", PROTO),
        (JSON, f"{PROTO};q=0, {JSON}", JSON),
        (JSON, f"{PROTO};q=nonsense", PROTO),
        ("APPLICATION/JSON ; charset=UTF-8", None, JSON),
    ],
)
def test_the_answer_has_the_first_accepted_type_or_that_of_the_request(
    content_type: str, accept: str | None, answer: str
) -> None:
    media = Media(JSON, PROTO, "application/x-protobuf")
    for _ in range(2):  # the second answer is from memory
        encodings = media.encodings(content_type.encode(), None if accept is None else accept.encode())
        assert encodings.content_type == answer.encode()
        assert encodings.json_out == (answer == JSON)


def test_headers_longer_than_any_client_sends_them_are_not_remembered() -> None:
    media = Media(JSON, PROTO)
    for number in range(100):
        media.encodings(f"{JSON}; x={number}".encode() + b"y" * 30_000, None)
        media.encodings(JSON.encode(), b"text/html, " + b"z" * 30_000 + str(number).encode())
    assert sum(len(content_type or b"") + len(accept or b"") for content_type, accept in media._known) < 1_000


@pytest.mark.parametrize("content_type", [None, b"", b"text/json", b"application/json; charset=utf-16", b"\xff"])
def test_other_content_types_are_refused_with_a_list(content_type: bytes | None) -> None:
    said = "^content-type '.+' is not one of" if content_type else "^there is no content-type: name one of"
    with pytest.raises(UnsupportedMediaType, match=f"{said} application/json, application/proto$"):
        Media(JSON, PROTO).encodings(content_type, None)


def test_memory_of_headers_is_bounded() -> None:
    media = Media(JSON, PROTO)
    for number in range(5_000):
        media.encodings(JSON.encode(), b"x/%d" % number)
    assert len(media._known) <= 1_000


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (None, False),
        (b"gzip", True),
        (b"br, GZIP;q=0.5".lower(), True),
        (b"gzip; q=0", False),
        (b"xgzip", False),
        (b"identity", False),
    ],
)
def test_gzip_is_used_only_for_those_who_list_it(header: bytes | None, accepted: bool) -> None:
    assert accepts_gzip(header) == accepted


def test_only_gzip_and_identity_are_read() -> None:
    assert [is_gzip(h) for h in (None, b"", b"identity", b"GZip")] == [False, False, False, True]
    with pytest.raises(UnsupportedEncoding, match="gzip, identity"):
        is_gzip(b"gzip, gzip")


def test_entries_are_sorted_by_quality_and_otherwise_keep_their_order() -> None:
    assert by_quality("a;q=0.5, b, c; q=0.9;x=1, d;q=0, e") == ["b", "e", "c;x=1", "a"]
