"""Proofs that were withdrawn before their time: token ids, serial numbers of certificates, and whole identities.

tokens: [5d41402abc4b2a76]   # jti, as `hqctl token inspect` prints it
subjects: [ops/ada, "spiffe://hq.example/agent/node-1"]
serials: ["03AC5C266A0B409B"]   # as `openssl x509 -noout -serial` prints it
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Final

from serving import yamltext
from serving.auth.watched_files import BadSecurity
from serving.errors import Unauthenticated
from serving.rights.access import Identity, ProofKind

_LISTS: Final = ("tokens", "subjects", "serials")


@dataclass(frozen=True, slots=True)
class Revocations:
    """The entries of a file of revocations. Serials are in lower case, without colons and zeros in front."""

    tokens: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    serials: frozenset[str] = frozenset()

    def check(self, identity: Identity) -> None:
        """Raises Unauthenticated: the proof was withdrawn."""
        ids = self.tokens if identity.kind is ProofKind.TOKEN else self.serials
        if identity.id in ids or identity.name in self.subjects:
            raise Unauthenticated(f"the {identity.kind.value} of {identity.name} was revoked: get a new one")


def plain_serial(text: str) -> str:
    """A serial number in one form, however it was written."""
    return text.replace(":", "").lower().lstrip("0")


def parse_revoked(text: bytes) -> Revocations:
    """Read the file. Raises BadSecurity, naming the field."""
    try:
        loaded: Any = yamltext.load(text) or {}
    except yamltext.BadYaml as error:
        raise BadSecurity(f"is not valid YAML: {error}") from None
    if not isinstance(loaded, dict):
        raise BadSecurity(f"expected a mapping with {', '.join(_LISTS)}")
    found: dict[str, frozenset[str]] = {}
    for name, words in loaded.items():
        if name not in _LISTS:
            raise BadSecurity(f"{name}: unknown key; {_instead(str(name))}")
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise BadSecurity(f'{name}: expected a list of strings; write numbers in quotes: ["0123"]')
        found[name] = frozenset(map(plain_serial, words) if name == "serials" else words)
    return Revocations(**found)


def _instead(name: str) -> str:
    close = difflib.get_close_matches(name, _LISTS, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(_LISTS)}"
