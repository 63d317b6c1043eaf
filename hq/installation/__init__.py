"""`hq init`: the files of an installation in production: CAs, certificates, tokens, settings, units, for each machine.

It writes a folder on the machine that keeps the CAs' keys, and talks to no server.
"""
