"""The console: pages for people over HQ, or a federation gateway, and where they run over CMS, Nanny and Wall-E.

It is a client of all of them and keeps nothing. A person's own token is passed on; the console has no rights itself.
"""
