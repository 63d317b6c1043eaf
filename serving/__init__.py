"""The base of every server: transport, the table of methods, the error tree, limits, security, time.

Servers use it that must not know each other: `hq` and `federated`, say. `transport/` serves their tables of methods
(`calls/`) in every protocol.
"""

from serving import compiled

compiled.use()
