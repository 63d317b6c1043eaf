"""The client and discovery for programs without asyncio: Django, Celery, scripts.

    from hqclient.sync import Client, Discovery

    with Client(["hq-1:7071", "hq-2:7071"]) as client:
        answer = client.get("web-1")

    with Discovery(["hq-1:7071", "hq-2:7071"]).service("web", port="http") as web:
        web.ready(10)
        endpoint = web.pick()

The same calls and promises as hqclient's, over one background thread per process; any thread may call. After a fork,
each object opens its connections again with its first call. Everything else is imported from `hqclient`.
"""

from hqclient.sync.client import Client, SyncWatch
from hqclient.sync.discovery import Discovery, SyncService, SyncServices

__all__ = ["Client", "Discovery", "SyncService", "SyncServices", "SyncWatch"]
