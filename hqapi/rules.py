"""Which roles the calls of hq.v1 are for, besides the rules of `serving.rights.rules` that every server may use.

With READ, agents see their own node, uploaders their services, others what their scope says; nobody sees secret
descriptors.
"""

from __future__ import annotations

from typing import Final

from serving.rights.rules import INSPECT, OPERATE, AuditLevel, Role, Rule

# Revisions with secret descriptors: the agent of the instance's node and the uploader of its service, nobody else.
FETCH: Final = Rule("fetch", frozenset({Role.AGENT, Role.UPLOADER}), AuditLevel.READS)
BEGIN: Final = Rule("begin", frozenset({Role.AGENT}), AuditLevel.READS)
# Not recorded unless denied: thousands of statuses and heartbeats come per second, each with its sender and time.
REPORT: Final = Rule("report", frozenset({Role.AGENT}), AuditLevel.DENIALS)
# Reads at the agents' own listener, which no other role may use.
ATTEND: Final = Rule("read at the agents' listener", frozenset({Role.AGENT}))
ATTEND_FETCH: Final = Rule("fetch at the agents' listener", frozenset({Role.AGENT}), AuditLevel.READS)
UPLOAD: Final = Rule("upload", frozenset({Role.UPLOADER, Role.ADMIN}), AuditLevel.WRITES)
# Uploaders and admins may update anything; schedulers only allocation and node_name, which the mask must name.
UPDATE: Final = Rule("update", frozenset({Role.UPLOADER, Role.SCHEDULER, Role.ADMIN}), AuditLevel.WRITES)

# Planned work on a node: for operators, and for Wall-E, whose role is HEALER.
SILENCE: Final = Rule("inspect silence", INSPECT.roles | {Role.HEALER})
SUSPEND: Final = Rule("suspend nodes", OPERATE.roles | {Role.HEALER}, AuditLevel.ORDERS)

DENIED_BY_STATE: Final = ("WRONG_NODE", "WRONG_UID", "FENCED")
"""Reasons of denials by what is stored, not by the policy: another node's instance, another uid, another reporter."""
