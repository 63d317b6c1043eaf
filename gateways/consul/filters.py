"""`filter=`: Consul's expressions over the fields of an answer's entries. No I/O.

    expression := all { "or" all }          all := term { "and" term }
    term       := "not" term | "(" expression ")" | match
    match      := FIELD ("==" | "!=") VALUE | FIELD "is" ["not"] "empty"
                | VALUE ["not"] "in" FIELD | FIELD ["not"] "contains" VALUE

A field is `Service.Meta.tier` or `Service.Meta["tier"]`; a value is a word, or anything in "quotes" or `backticks`.
`matches` is refused: a pattern of a stranger's could hold up everybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

_MOST_CHARACTERS: Final = 2_000
_MOST_DEPTH: Final = 32
_MOST_MATCHES: Final = 20  # each looks at every instance
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<sign>==|!=|[()\[\]])|"(?P<quoted>(?:[^"\\]|\\.)*)"|`(?P<raw>[^`]*)`|(?P<word>[^\s()\[\]=!"`]+))""",
    re.DOTALL,
)
_FIELD: Final = re.compile(r"[A-Za-z][\w-]*(?:\.[\w:@/-]+)*")
_SHOWN: Final = 40

Holds = Callable[[Mapping[str, Any]], bool]
"""Whether an entry is selected."""


class FilterError(Exception):
    """An expression that cannot be used; str() names the position, from 1, and what is wrong there."""


@dataclass(frozen=True, slots=True)
class _Token:
    """One of: a sign (`(`, `==`), a word, a value in quotes; and where it begins. The last one is empty."""

    text: str
    at: int
    kind: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text in words


def parse_filter(text: str, fields: Mapping[str, Any]) -> Holds:
    """An expression as a predicate.

    `fields`: an entry with all fields that there are; an empty dictionary in it may have any keys.

    Raises:
        FilterError: naming the position.
    """
    if len(text) > _MOST_CHARACTERS:
        raise FilterError(f"{len(text)} characters, of {_MOST_CHARACTERS} allowed")
    return _FilterParser(text, fields).parse()


class _FilterParser:
    """One pass over the tokens; each method reads one rule of the grammar."""

    def __init__(self, text: str, fields: Mapping[str, Any]) -> None:
        self._tokens, self._fields, self._next = [*_tokens(text)], fields, 0
        self._matches = 0

    def parse(self) -> Holds:
        holds = self._expression(0)
        if self._token.kind != "end":
            self._fail("`and`, `or` or the end")
        return holds

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += token.kind != "end"
        return token

    def _took(self, *words: str) -> bool:
        """Take a word if it is the next one."""
        is_next = self._token.is_word(*words)
        self._next += is_next
        return is_next

    def _fail(self, expected: str, at: _Token | None = None) -> NoReturn:
        token = at or self._token
        what = f"{token.text[:_SHOWN]!r}" if token.kind != "end" else "the end"
        raise FilterError(f"position {token.at}: expected {expected}, found {what}")

    # --- and, or, not -------------------------------------------------------------------------------------------------

    def _expression(self, depth: int) -> Holds:
        if depth > _MOST_DEPTH:
            raise FilterError(f"position {self._token.at}: deeper than {_MOST_DEPTH} levels")
        parts = [self._all(depth)]
        while self._took("or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else lambda entry: any(holds(entry) for holds in parts)

    def _all(self, depth: int) -> Holds:
        parts = [self._term(depth)]
        while self._took("and"):
            parts.append(self._term(depth))
        return parts[0] if len(parts) == 1 else lambda entry: all(holds(entry) for holds in parts)

    def _term(self, depth: int) -> Holds:
        is_negated = False
        while self._took("not"):
            is_negated = not is_negated
        is_group = self._token.kind == "sign" and self._token.text == "("
        holds = self._group(depth) if is_group else self._match()
        return _negate(holds) if is_negated else holds

    def _group(self, depth: int) -> Holds:
        self._take()
        holds = self._expression(depth + 1)
        if (closing := self._take()).text != ")" or closing.kind != "sign":
            self._fail("`)`", closing)
        return holds

    # --- matches ------------------------------------------------------------------------------------------------------

    def _match(self) -> Holds:
        self._matches += 1
        if self._matches > _MOST_MATCHES:
            raise FilterError(f"position {self._token.at}: more than {_MOST_MATCHES} matches: ask for less at once")
        if self._is_in():
            return self._in()
        path = self._field()
        sign = self._take()
        if sign.kind == "sign" and sign.text in ("==", "!="):
            return self._equals(path, is_equal=sign.text == "==")
        if sign.is_word("is"):
            is_negated = self._took("not")
            if not self._took("empty"):
                self._fail("`empty`")
            return _negate(_is_empty(path)) if is_negated else _is_empty(path)
        is_negated = sign.is_word("not")
        if is_negated:
            sign = self._take()
        if not sign.is_word("contains"):
            self._fail("`==`, `!=`, `is empty`, `contains` or `in`; HQ has no `matches`", sign)
        has = _has(path, self._value())
        return _negate(has) if is_negated else has

    def _is_in(self) -> bool:
        """Whether the second word, or after `not` the third one, is `in`."""
        second, *third = self._tokens[self._next + 1 : self._next + 3] or [self._token]
        return second.is_word("in") or (second.is_word("not") and any(one.is_word("in") for one in third))

    def _in(self) -> Holds:
        value = self._value()
        is_negated = self._took("not")
        self._take()  # `in`
        has = _has(self._field(), value)
        return _negate(has) if is_negated else has

    def _equals(self, path: tuple[str, ...], *, is_equal: bool) -> Holds:
        value = self._value()
        return _equals(path, value) if is_equal else _negate(_equals(path, value))

    def _value(self) -> str:
        token = self._take()
        if token.kind not in ("word", "value"):
            self._fail("a value", token)
        return token.text

    def _field(self) -> tuple[str, ...]:
        token = self._take()
        if token.kind != "word" or not _FIELD.fullmatch(token.text):
            self._fail("a field like Service.Meta.tier", token)
        path = token.text.split(".")
        while self._token.kind == "sign" and self._token.text == "[":
            self._take()
            path.append(self._value())
            if (closing := self._take()).text != "]" or closing.kind != "sign":
                self._fail("`]`", closing)
        self._check_field(path, token)
        return tuple(path)

    def _check_field(self, path: list[str], token: _Token) -> None:
        at: Any = self._fields
        for part in path:
            at = at[0] if isinstance(at, list) and at else at
            if at == {}:  # of labels and the like: any key
                at = ""
            elif isinstance(at, Mapping) and part in at:
                at = at[part]
            else:
                raise FilterError(f"position {token.at}: there is no field {token.text[:_SHOWN]!r}")


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            begin = at + len(text[at:]) - len(text[at:].lstrip())
            raise FilterError(f"position {begin + 1}: {text[begin:][:_SHOWN]!r} is not a word, a sign or a whole quote")
        kind = str(found.lastgroup)
        begin, part = found.start(kind) + (kind not in ("quoted", "raw")), found[kind]
        if kind == "quoted":
            part = re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL)
        yield _Token(part, begin, "value" if kind in ("quoted", "raw") else kind)
        at = found.end()
    yield _Token("", len(text) + 1, "end")


def _negate(holds: Holds) -> Holds:
    return lambda entry: not holds(entry)


def _values(entry: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values of an entry at a path: nothing, one value, or that of each item of a list."""
    if not path:
        yield entry
    elif isinstance(entry, list):
        for item in entry:
            yield from _values(item, path)
    elif isinstance(entry, Mapping) and path[0] in entry:
        yield from _values(entry[path[0]], path[1:])


def _equals(path: tuple[str, ...], value: str) -> Holds:
    return lambda entry: any(_text(one) == value for one in _values(entry, path))


def _is_empty(path: tuple[str, ...]) -> Holds:
    return lambda entry: not any(_values(entry, path))


def _has(path: tuple[str, ...], value: str) -> Holds:
    """Whether a list or the keys of a map have a value, or a text has it as a part."""

    def holds(entry: Mapping[str, Any]) -> bool:
        return any(value in (one if isinstance(one, list | Mapping) else _text(one)) for one in _values(entry, path))

    return holds


def _text(value: Any) -> str:
    """A single value as an expression writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
