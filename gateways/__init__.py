"""HQ over protocols that clients already speak: `dns`, `consul` (its read API), `xds`; each a process of its own.

All three stand on `picture`: the instances of the published services, followed by the discovery library, and the rule
that a gateway never makes things worse: what is unknown is never reported as absent.
"""
