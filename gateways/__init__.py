"""HQ in the protocols that clients already speak: `dns`, `consul` (its read API), `xds`; each a process of its own.

All three stand on `picture`: the instances of the published services, followed by the discovery library, and the rule
that a gateway never makes the world worse: what is not known is never said to be absent.
"""
