"""Strategies for the single values of the model: ids, names, texts, times.

They are cached, here and beside: hypothesis checks every new strategy object, and that takes its time.
"""

import string
from functools import cache

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import strategies as st

ALPHABET = string.ascii_letters + string.digits + "._:@-"


@cache
def ids(max_size: int = 253) -> st.SearchStrategy[str]:
    return st.text(ALPHABET, min_size=1, max_size=max_size).filter(lambda word: word not in (".", ".."))


@cache
def names() -> st.SearchStrategy[str]:
    return ids(max_size=63)


@cache
def unique_names(max_size: int = 3) -> st.SearchStrategy[list[str]]:
    return st.lists(names(), unique=True, max_size=max_size)


@cache
def texts(max_size: int = 30) -> st.SearchStrategy[str]:
    """Any text that processes and people can be given."""
    return st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=max_size)


@cache
def lines(max_size: int = 30) -> st.SearchStrategy[str]:
    """Any text of one line, at least a character long."""
    return st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=max_size)


@cache
def label_keys() -> st.SearchStrategy[str]:
    return st.text(ALPHABET + "/", min_size=1, max_size=40)


@cache
def labels() -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(label_keys(), st.just("") | lines(), max_size=4)


@cache
def annotations() -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(label_keys(), st.text(max_size=60), max_size=3)


@cache
def paths() -> st.SearchStrategy[str]:
    """Relative paths that stay below where they start."""
    return st.lists(names(), min_size=1, max_size=3).map("/".join)


@cache
def checksums() -> st.SearchStrategy[str]:
    return st.just("") | st.binary(min_size=32, max_size=32).map(lambda digest: f"sha256:{digest.hex()}")


@cache
def variables() -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8", exclude_characters="=\0"), min_size=1, max_size=20)


@cache
def modes() -> st.SearchStrategy[int]:
    return st.integers(0, 0o7777)


@cache
def reasons() -> st.SearchStrategy[str]:
    return st.just("") | st.from_regex(r"[A-Z][A-Za-z0-9]{0,63}", fullmatch=True)


@cache
def timestamps() -> st.SearchStrategy[Timestamp]:
    return st.builds(Timestamp, seconds=st.integers(0, 253_402_300_799), nanos=st.integers(0, 999_999_999))


@cache
def durations(limit_s: int = 30 * 86_400) -> st.SearchStrategy[Duration]:
    return st.builds(Duration, seconds=st.integers(0, limit_s - 1), nanos=st.integers(0, 999_999_999))
