"""Proofs of identity as attackers bring them: genuine ones, and every way that we know to spoil or forge a token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.fuzz.callers import CALLERS, KEEPER, Caller
from tests.fuzz.jws import ALGORITHMS, HOUR_S, KEY_IDS, LEFT_OUT, WRONG, b64, compact, signed, unb64
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer

_PUBLIC: Final = (
    (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    (Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
)


class Proof(NamedTuple):
    """What is sent as `authorization`, header by header, and who that is; None: nobody must be let in with it."""

    values: tuple[bytes, ...]
    caller: Caller | None
    kind: str


class Forger:
    """Has the tokens of callers without rights to `vault`, all public keys, a key of its own, and time.

    What it signs with the issuers' keys stands for tokens that the issuer signed for other ends, or in error.
    """

    def __init__(self, issuers: tuple[Issuer, ...], rng: random.Random) -> None:
        self._issuers, self._rng = issuers, rng
        self._own = Ed25519PrivateKey.generate()
        self._kinds: tuple[Callable[[], bytes], ...] = (
            *(
                self._other_algorithm,
                self._signed_with_the_public_key,
                self._other_key_id,
                self._own_key,
                self._critical,
            ),
            *(
                self._wrong_claim,
                self._no_claims,
                self._no_header,
                self._other_signature,
                self._transplanted,
                self._twice,
                self._text,
            ),
        )

    def proof(self) -> Proof:
        """One, at random."""
        rng = self._rng
        kind = rng.random()
        if kind < 0.4:
            caller = rng.choice(CALLERS)
            return Proof((_bearer(rng, self._genuine(caller.name)),), caller, "genuine")
        if kind < 0.45:
            return Proof((), None, "none")
        if kind < 0.5:
            values = [_bearer(rng, self._genuine(rng.choice(CALLERS).name)), b"Bearer x.y.z", b""]
            return Proof(tuple(rng.choices(values, k=rng.randrange(2, 4))), None, "several")
        make = rng.choice(self._kinds)
        return Proof((b"Bearer " + make(),), None, make.__name__)

    # --- tokens that are right --------------------------------------------------------------------------------------

    def _claims(self, **changes: Any) -> dict[str, Any]:
        subject = self._rng.choice((KEEPER, *(caller.name for caller in CALLERS)))
        claims = {"sub": subject, "aud": AUDIENCE, "iss": ISSUER, "exp": round(time.time()) + HOUR_S}
        return {name: value for name, value in {**claims, **changes}.items() if value is not LEFT_OUT}

    def _header(self, issuer: Issuer, **changes: Any) -> dict[str, Any]:
        header = {"alg": issuer.algorithm, "typ": "JWT", "kid": issuer.kid, **changes}
        return {name: value for name, value in header.items() if value is not LEFT_OUT}

    def _issuer(self) -> Issuer:
        return self._rng.choice(self._issuers)

    def _genuine(self, subject: str) -> bytes:
        issuer = self._issuer()
        return compact(self._header(issuer), self._claims(sub=subject), issuer.key)

    # --- and those that are not --------------------------------------------------------------------------------------

    def _other_algorithm(self) -> bytes:
        issuer, rng = self._issuer(), self._rng
        other = "RS256" if issuer.algorithm == "EdDSA" else "EdDSA"
        made = compact(self._header(issuer, alg=rng.choice((other, *ALGORITHMS))), self._claims(), issuer.key)
        return made if rng.random() < 0.5 else made[: made.rindex(b".") + 1]

    def _signed_with_the_public_key(self) -> bytes:
        """A token signed with the public key, as if it were a secret that server and issuer share."""
        issuer, rng = self._issuer(), self._rng
        algorithm = rng.choice(("HS256", "HS384", "HS512", issuer.algorithm))
        public = issuer.key.public_key()
        secret = rng.choice((*(public.public_bytes(*form) for form in _PUBLIC), json.dumps(issuer.public()).encode()))
        digest = {"HS384": hashlib.sha384, "HS512": hashlib.sha512}.get(algorithm, hashlib.sha256)
        signing = signed(self._header(issuer, alg=algorithm), self._claims())
        return signing + b"." + b64(hmac.digest(secret, signing, digest))

    def _other_key_id(self) -> bytes:
        issuer, rng = self._issuer(), self._rng
        kid = issuer.kid
        of_it = ({"kid": kid}, [kid], "../" + kid, kid + "\0", kid * 1_000, kid.upper(), f" {kid}")
        return compact(self._header(issuer, kid=rng.choice((*of_it, *KEY_IDS))), self._claims(), issuer.key)

    def _own_key(self) -> bytes:
        """Brought along, pointed at, or called by the issuer's name."""
        own = base64.urlsafe_b64encode(self._own.public_key().public_bytes_raw()).decode().rstrip("=")
        jwk = {"kty": "OKP", "crv": "Ed25519", "x": own, "kid": self._issuers[0].kid, "use": "sig"}
        brought: tuple[dict[str, Any], ...] = (
            {},
            {"jwk": jwk},
            {"jku": "https://127.0.0.1:1/jwks"},
            {"x5c": [own]},
            {"x5u": "file:///dev/zero"},
        )
        header = self._header(self._issuer(), alg="EdDSA", **self._rng.choice(brought))
        return compact(header, self._claims(), self._own)

    def _critical(self) -> bytes:
        """Extensions that must be understood (RFC 7515, 4.1.11) and are not."""
        odd: tuple[Any, ...] = (
            {"crit": ["x"], "x": 1},
            {"crit": []},
            {"crit": "exp"},
            {"crit": ["exp"]},
            {"crit": None},
            {"crit": [1]},
        )
        detached = ({"b64": False, "crit": ["b64"]}, {"b64": False})
        issuer = self._issuer()
        return compact(self._header(issuer, **self._rng.choice(odd + detached)), self._claims(), issuer.key)

    def _wrong_claim(self) -> bytes:
        name = self._rng.choice(tuple(WRONG))
        issuer, wrong = self._issuer(), self._rng.choice(WRONG[name])
        value = wrong() if callable(wrong) else wrong
        return compact(self._header(issuer), self._claims(**{name: value}), issuer.key)

    def _no_claims(self) -> bytes:
        deep = b"[" * 3_000 + b"]" * 3_000
        odd = (b"", b"[]", b"1", b"null", b'"x"', b"{", b"\xff\xfe", deep, b'{"a":' * 900 + b"1" + b"}" * 900, b"{}")
        issuer = self._issuer()
        return compact(self._header(issuer), self._rng.choice(odd), issuer.key)

    def _twice(self) -> bytes:
        """A member that occurs twice, right both times or once."""
        issuer, rng = self._issuer(), self._rng
        header, claims = self._header(issuer), self._claims()
        of = rng.choice((header, claims))
        name = rng.choice(tuple(of))
        more = json.dumps({name: rng.choice((of[name], None, "none", 0))}).encode()[:-1]
        made = [json.dumps(each).encode() for each in (header, claims)]
        place = int(of is claims)
        made[place] = more + b"," + made[place][1:]
        return compact(made[0], made[1], issuer.key)

    def _no_header(self) -> bytes:
        issuer = self._issuer()
        good = json.dumps(self._header(issuer)).encode()
        # Of two members of one name the last one counts (RFC 7519, 4): it says that there is no signature.
        twice = good[:-1] + b',"alg":"none"}'
        odd = (b"", b"[]", b"1", b"null", b"{", b"\xff" + good, good[:-1], good + b"}", b"[" * 3_000, b"{}", twice)
        return compact(self._rng.choice(odd), self._claims(), issuer.key)

    def _other_signature(self) -> bytes:
        signed, _, signature = self._genuine(self._rng.choice((KEEPER, CALLERS[0].name))).rpartition(b".")
        raw, rng = bytearray(unb64(signature)), self._rng
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        odd = (bytes(raw), b"", bytes(len(raw)), bytes(raw)[:-1], bytes(raw) + b"\0", rng.randbytes(64))
        return signed + b"." + b64(rng.choice(odd))

    def _transplanted(self) -> bytes:
        """The signature, or the header, of another token."""
        ours, theirs = self._genuine(CALLERS[-1].name).split(b"."), self._genuine(KEEPER).split(b".")
        taken = [theirs[0], theirs[1], ours[2]] if self._rng.random() < 0.5 else [ours[0], theirs[1], ours[2]]
        return b".".join(taken)

    def _text(self) -> bytes:
        made, rng = self._genuine(KEEPER), self._rng
        place = rng.randrange(made.index(b"."))
        junk = rng.choice((b"=", b" ", b"\t", b"\xff", b"%", b"+", b"/", b"!", b"."))
        cut = (made[:place], made[:place] + junk + made[place:])
        return rng.choice((*cut, made + b".", made + b".x.y", made + b"a" * 9_000, b"..", b"", b"{}"))


def _bearer(rng: random.Random, token: bytes) -> bytes:
    return rng.choice((b"Bearer ", b"bearer ", b"BEARER ")) + token
