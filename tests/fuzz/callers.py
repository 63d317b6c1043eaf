"""Who attacks a secured replica: their rights in its policy, and what they must never be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.support.authority.matrix import refused_calls

# Instances of service `vault` on node-9 are within nobody's reach but the keeper's and a plain reader's.
KEEPER: Final = "keeper"
MARK: Final = "mark-7f3a9c"  # a label of theirs
SECRET: Final = "canary-91b2"  # in every secret descriptor

POLICY: Final = """
roles:
  reader:
    - identities: ["reader/*"]
    - identities: [svc-reader]
      services: [svc]
    - identities: [keeper]
  agent:
    - identities: ["agent/{node}", "spiffe://hq.test/agent/{node}"]
  uploader:
    - identities: [svc-uploader]
      services: [svc]
    - identities: [keeper]
      services: ["*"]
  scheduler:
    - identities: [svc-scheduler]
      services: [svc]
  operator:
    - identities: [rack-operator]
      nodes: [node-1]
  admin:
    - identities: [svc-admin]
      services: [svc]
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may do something.

    Attributes:
        role: its column of the matrix; empty: none, for it is in no grant.
        sees_all: it reads the instances of `vault`, too.
    """

    name: str
    role: str = ""
    sees_all: bool = False

    def may_never(self, call: str) -> bool:
        """Whether the matrix has no request of this call that its role lets in."""
        return not self.role or (call, self.role) in _NEVER

    def may_hold_secrets(self, call: str) -> bool:
        """Secret descriptors of its own are told to agents and uploaders, by one call alone."""
        return call == "GetRevision" and self.role in ("agent", "uploader")


CALLERS: Final = (
    Caller("reader/ann", "reader", sees_all=True),
    Caller("svc-reader", "reader"),
    Caller("agent/node-1", "agent"),
    Caller("svc-uploader", "uploader"),
    Caller("svc-scheduler", "scheduler"),
    Caller("rack-operator", "operator"),
    Caller("svc-admin", "admin"),
    Caller("nobody-knows"),
)
AGENT: Final = Caller("spiffe://hq.test/agent/node-1", "agent")


_COLUMNS: Final = {
    "read": "reader",
    "age1": "agent",
    "up-w": "uploader",
    "sche": "scheduler",
    "oper": "operator",
    "admi": "admin",
}
_NEVER: Final = refused_calls("hq", _COLUMNS)
