"""The console: web pages for HQ or a federation gateway, and for CMS, Nanny and Wall-E if they run.

It is a client of all of them and keeps nothing. A person's own token is passed on; the console has no rights itself.
"""

import hqclient  # noqa: F401  (before gRPC, which reads then how much it may log)
