"""The callers of the matrix: every role without a scope, with one that covers what is asked about, and with another."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.support.token_issuer import AUDIENCES, Issuer

POLICY: Final = """
roles:
  reader:
    - {identities: [reader, "spiffe://hq.test/gateway"]}
    - {identities: [reader-here], services: [web]}
    - {identities: [reader-there], services: [mail]}
  agent:
    - {identities: ["agent/{node}"]}
  uploader:
    - {identities: [uploader-here], services: [web]}
    - {identities: [uploader-there], services: [mail]}
  scheduler:
    - {identities: [scheduler]}
  monitor:
    - {identities: [monitor]}
    - {identities: [monitor-there], nodes: [n2]}
  healer:
    - {identities: [healer]}
    - {identities: [healer-there], nodes: [n2]}
  operator:
    - {identities: [operator]}
    - {identities: [operator-here], nodes: [n1]}
    - {identities: [operator-web], services: [web]}
    - {identities: [operator-there], nodes: [n2]}
  admin:
    - {identities: [admin]}
    - {identities: [admin-here], services: [web]}
    - {identities: [admin-there], services: [mail]}
    - {identities: [admin-away], clusters: [elsewhere]}
"""


class Caller(NamedTuple):
    """One column."""

    name: str
    subject: str  # of its token; empty: it brings none
    what: str
    good_for_s: float = 600.0
    is_for: tuple[str, ...] = AUDIENCES


CALLERS: Final = (
    Caller("none", "", "brings no token"),
    Caller("expi", "admin", "an admin whose token has run out", good_for_s=-60),
    Caller("aud", "admin", "an admin whose token is for another audience", is_for=("another",)),
    Caller("read", "reader", "reader"),
    Caller("re-w", "reader-here", "reader of service web"),
    Caller("re-m", "reader-there", "reader of service mail"),
    Caller("age1", "agent/n1", "agent of node n1"),
    Caller("age2", "agent/n2", "agent of node n2"),
    Caller("up-w", "uploader-here", "uploader of service web, owner of Wall-E's project web"),
    Caller("up-m", "uploader-there", "uploader of service mail, owner of Wall-E's project mail"),
    Caller("sche", "scheduler", "scheduler"),
    Caller("moni", "monitor", "monitor"),
    Caller("mo-2", "monitor-there", "monitor of node n2"),
    Caller("heal", "healer", "healer"),
    Caller("he-2", "healer-there", "healer of node n2"),
    Caller("oper", "operator", "operator"),
    Caller("op-1", "operator-here", "operator of node n1"),
    Caller("op-w", "operator-web", "operator of service web"),
    Caller("op-2", "operator-there", "operator of node n2"),
    Caller("admi", "admin", "admin"),
    Caller("ad-w", "admin-here", "admin of service web"),
    Caller("ad-m", "admin-there", "admin of service mail"),
    Caller("ad-a", "admin-away", "admin of another cluster"),
)
NAMES: Final = tuple(caller.name for caller in CALLERS)


def tokens(issuer: Issuer) -> dict[str, str]:
    """By the caller's name."""
    return {
        one.name: issuer.token(one.subject, good_for_s=one.good_for_s, aud=list(one.is_for)) if one.subject else ""
        for one in CALLERS
    }
