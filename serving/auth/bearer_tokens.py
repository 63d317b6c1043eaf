"""Signed tokens (JWT): EdDSA or RS256, by keys from a JWKS file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from serving.auth.audiences import COMMON, audiences_in, how_to_sign
from serving.auth.watched_files import BadSecurity
from serving.clock import Clock
from serving.errors import Unauthenticated
from serving.rights.access import Identity, ProofKind

Keys = Mapping[str, jwt.PyJWK]

_AS_DER: Final = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
_FAR_S: Final = 1e12  # some thirty thousand years
_LONGEST: Final = 8_192  # characters
_REMEMBERED: Final = 16_384
_LEAST_RSA_BITS: Final = 2_048
_SECRET: Final = frozenset(("d", "k", "p", "q", "dp", "dq", "qi", "oth"))  # members of a JWK that only its owner knows
_MAX_SUBJECT: Final = 2_048
_MAX_SHOWN: Final = 8
# Times are compared by ourselves: on the injected clock, and again for every call of a remembered token.
_OPTIONS: Final[jwt.types.Options] = {
    "require": ["exp", "sub", "aud", "iss"],
    "verify_aud": False,  # compared by ourselves, to say what it is for
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}


@dataclass(frozen=True, slots=True)
class Demands:
    """The conditions on a token.

    Attributes:
        audience: the name that the token must list.
        skew_s: how far the clock of its issuer may be off.
        max_life_s: for how long it may be valid from now on.
        common_audience: accepted in its place: the name that all servers had up to 0.1.0.
    """

    audience: str
    issuer: str
    skew_s: float
    max_life_s: float = 86_400.0
    common_audience: bool = False

    def check_audience(self, claim: Any) -> None:
        """Raises Unauthenticated: the token is for other servers."""
        names = audiences_in(claim)
        if self.audience in names or (self.common_audience and COMMON in names):
            return
        others = sorted(names - {self.audience})[:_MAX_SHOWN]
        old = "; for one release --common-audience at the server accepts it" if COMMON in names else ""
        raise Unauthenticated(
            f"the token is for {' and '.join(others) or 'nobody'}, and this server is {self.audience}: "
            f"{how_to_sign((*others, self.audience))}{old}"
        )


def parse_jwks(contents: Sequence[bytes]) -> Keys:
    """Public keys by id. Raises BadSecurity."""
    try:
        listed = json.loads(contents[0])["keys"]
        keys = [_key(entry) for entry in listed]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadSecurity("not a JSON Web Key Set: expected an object with a list named keys") from error
    found = {key.key_id: key for key in keys if key.key_id}
    if len(found) != len(keys):
        raise BadSecurity("every key needs a kid, each a different one")
    if not found:
        raise BadSecurity("it contains no key")
    return found


def _key(entry: Any) -> jwt.PyJWK:
    kid = str(entry.get("kid", ""))[:100] if isinstance(entry, dict) else ""
    if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str):
        raise BadSecurity("every key must be an object with a string kid")
    if _SECRET.intersection(entry):
        raise BadSecurity(f"key {kid!r} is a private or secret key: publish public keys only, and replace the pair")
    try:
        key = jwt.PyJWK(entry, "RS256" if entry.get("kty") == "RSA" else "EdDSA")
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:  # whose message may quote all of the key
        raise BadSecurity(f"key {kid!r} cannot be used: it is malformed ({type(error).__name__})") from error
    fits = isinstance(key.key, Ed25519PublicKey) or (
        isinstance(key.key, RSAPublicKey) and key.key.key_size >= _LEAST_RSA_BITS
    )
    if not fits or entry.get("alg", key.algorithm_name) != key.algorithm_name or entry.get("use", "sig") != "sig":
        raise BadSecurity(
            f"key {kid!r} cannot be used: use Ed25519 (EdDSA) or RSA of at least 2048 bits (RS256), for signatures"
        )
    return key


def _fingerprints(keys: Keys) -> dict[str, str]:
    """Return the fingerprint of each key by its id; the same key under another id has the same one."""
    return {kid: hashlib.sha256(key.key.public_bytes(*_AS_DER)).hexdigest() for kid, key in keys.items()}


class Tokens:
    """Verifies tokens. Verified ones are remembered, so that the next call costs a lookup."""

    def __init__(self, keys: Keys, demands: Demands, clock: Clock) -> None:
        self._demands, self._clock = demands, clock
        self._keys, self._fingerprints = keys, _fingerprints(keys)
        self._known: dict[str, Identity] = {}

    def use(self, keys: Keys) -> None:
        """Put other keys in force."""
        self._keys, self._fingerprints = keys, _fingerprints(keys)
        self._known.clear()

    def accepts(self, identity: Identity) -> bool:
        """Whether the key that signed the identity's token is still in force."""
        return identity.key in self._fingerprints.values()

    def cached_identity(self, key: str) -> Identity | None:
        """The identity of the token that was remembered under this key, if it has not expired since."""
        known = self._known.get(key)
        return known if known is not None and known.expires_at * 1000 >= self._clock.wall_ms() else None

    def identity(self, token: str, remember_as: str = "") -> Identity:
        """Identity of the token's owner. Raises Unauthenticated; its message never contains the token."""
        found = self._verify_token(token)
        if found.expires_at * 1000 < self._clock.wall_ms():
            self._known.pop(remember_as, None)
            raise Unauthenticated(f"the token of {found.name} has expired: get a new one")
        if remember_as:
            if len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[remember_as] = found
        return found

    def _verify_token(self, token: str) -> Identity:
        if len(token) > _LONGEST:
            raise Unauthenticated(f"the token is longer than {_LONGEST} characters")
        key, demands = self._key(token), self._demands
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name],
                issuer=demands.issuer,
                options=_OPTIONS,
            )
            for part in token.split(".")[:2]:
                json.loads(jwt.utils.base64url_decode(part), object_pairs_hook=_once)
        except (jwt.PyJWTError, ValueError, OverflowError, RecursionError) as error:
            raise Unauthenticated(f"invalid token: {_reason(error)}") from error
        demands.check_audience(claims["aud"])
        return self._in_time(claims, self._fingerprints[key.key_id or ""])

    def _key(self, token: str) -> jwt.PyJWK:
        try:
            kid = jwt.get_unverified_header(token).get("kid")
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise Unauthenticated("the token is not a JWT: send `authorization: Bearer <token>`") from error
        key = self._keys.get(kid) if isinstance(kid, str) else None
        if key is None:
            raise Unauthenticated("the token's key (kid) is unknown to this server")
        return key

    def _in_time(self, claims: Mapping[str, Any], key: str) -> Identity:
        now_s, skew_s = self._clock.wall_ms() / 1000, self._demands.skew_s
        name, expires_at = claims["sub"], _time(claims, "exp")
        if not 0 < len(name) <= _MAX_SUBJECT or not name.isprintable():
            raise Unauthenticated("the token's subject (sub) is not a valid name")
        if expires_at > now_s + self._demands.max_life_s + skew_s:
            hours = f"{self._demands.max_life_s / 3_600:g} h"
            raise Unauthenticated(f"the token is valid for more than {hours} from now: get one that expires earlier")
        if "nbf" in claims and _time(claims, "nbf") > now_s + skew_s:
            raise Unauthenticated("the token is not valid yet (nbf): check the clocks, or wait")
        token_id = claims.get("jti", "")
        return Identity(name, ProofKind.TOKEN, expires_at + skew_s, key, token_id if isinstance(token_id, str) else "")


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError on a duplicate: others may use the value that we do not (RFC 7519, 4)."""
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a member is duplicated")
    return found


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    # Compared before it is converted: an integer may have hundreds of digits.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_FAR_S < value < _FAR_S:
        raise Unauthenticated(f"the token's {name} is not a valid time")
    return float(value)


_REASONS: Final = {
    jwt.InvalidSignatureError: "the signature does not match the key (kid) that it names",
    jwt.InvalidIssuerError: "wrong issuer (iss)",
    jwt.InvalidAlgorithmError: "the algorithm (alg) is not the one of its key (kid)",
}


def _reason(error: Exception) -> str:
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"claim {error.claim} is missing"
    return next((words for kind, words in _REASONS.items() if isinstance(error, kind)), "it is malformed")
