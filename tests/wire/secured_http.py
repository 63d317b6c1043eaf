"""HTTP to a secured replica."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.support.secured import Secured, Served
from tests.support.token_issuer import bearer


@asynccontextmanager
async def secured_http(replica: Served, files: Secured, token: str = "") -> AsyncIterator[httpx.AsyncClient]:
    tls = ssl.create_default_context(cafile=str(files.authority.cert))
    headers = dict([bearer(token)]) if token else {}
    base = f"https://{replica.addresses.http}"
    async with httpx.AsyncClient(verify=tls, headers=headers, base_url=base, trust_env=False) as client:
        yield client
