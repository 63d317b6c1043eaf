"""Values that programs stumble over, and some that are right, so that a request gets past the first check."""

from __future__ import annotations

import base64
import json
import random
from copy import deepcopy
from typing import Any, Final

IDS: Final = ("fuzz-1", "fuzz-2", "fuzz-11", "r1", "r2", "svc", "node-1", "default")
ODD: Final = (
    *("", ".", "..", "/", "a/b", "/fuzz-1", "fuzz-1/", "fuzz-1//r1", "../fuzz-1", "fuzz-1%2Fr1", "fuzz-1\x00", "\x00"),
    *("fuzz-1\n", "fuzz-1 ", " fuzz-1", "FUZZ-1", "fuzz-1\x7f", "fuzz-1\u0301", "fuzz\u20101", "\u202efuzz-1"),
    *("\uff46uzz-1", "\xe9", "e\u0301", "\ufeff", "\U0001f480", "\uffff", "%s%n", "{}", "${x}", "*", "**", "web-*"),
    *("'; --", "<script>", "null", "0", "-1", "NaN", "1e999", "\r\nx: y", "https://127.0.0.1:1/", "-" * 40),
    *("a" * length for length in (63, 64, 253, 254, 5_000)),
)
NUMBERS: Final = (
    *(0, 1, 2, 3, 7, 100),
    *((1 << bits) + offset for bits in (31, 32, 53, 63, 64) for offset in (-1, 0) if (bits, offset) != (64, 0)),
)
_JSON_ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1.5, 1e308, -0.0, 1 << 64, "", "x", "\ud800"),
    *([], {}, [[]], [None], {"": None}, {"a": {"b": 1}}),
)


def text(rng: random.Random) -> str:
    """Half of the time an id that may exist."""
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(IDS)
    if kind < 0.9:
        return rng.choice(ODD)
    return "".join(map(chr, rng.choices(range(1, 0x2FF), k=rng.randrange(20))))


def number(rng: random.Random, bits: int, *, signed: bool) -> int:
    """Often at an edge, always within the type."""
    value = rng.choice(NUMBERS) if rng.random() < 0.8 else rng.getrandbits(bits)
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def json_value(rng: random.Random) -> Any:
    """A JSON value that is probably of another type than expected."""
    return deepcopy(rng.choice(_JSON_ODD)) if rng.random() < 0.8 else text(rng)


def token(rng: random.Random, given: str) -> str:
    """A token that HQ gave, as it is or forged from it."""
    kind = rng.randrange(6)
    if kind == 0 or not given:
        return given
    if kind == 1:
        return given[: rng.randrange(len(given))]
    if kind == 2:
        place = rng.randrange(len(given))
        return given[:place] + rng.choice("AZaz09-_=+/ \x00") + given[place + 1 :]
    try:
        fields = json.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
    except ValueError:
        return given[::-1]
    if isinstance(fields, list) and fields:
        fields[rng.randrange(len(fields))] = rng.choice((*NUMBERS, -1, json_value(rng), text(rng)))
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
