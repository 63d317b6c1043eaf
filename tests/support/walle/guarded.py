"""A secured process of Wall-E, and calls to it with anybody's token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from google.protobuf import json_format
from google.protobuf.message import Message

from serving.auth.security import security_of
from serving.clock import SystemClock
from tests.support.secured import Secured
from tests.support.walle.running import Running, running
from walle.process.config import FileConfig

POLICY = """
roles:
  agent:
    - identities: ["agent/{node}"]
  uploader:
    - {identities: [web-uploader], services: [web]}
  reader:
    - identities: [reader]
  monitor:
    - {identities: [monitor]}
  operator:
    - identities: [operator]
    - {identities: [lab-operator], nodes: ["lab-*"]}
  admin:
    - identities: [admin]
    - {identities: [web-admin], services: [web]}
    - {identities: [lab-admin], nodes: ["lab-*"]}
    - {identities: [ams-admin], clusters: [ams]}
"""


class Guarded:
    """Attributes:
    walle: the process.
    files: policy, keys, audit log.
    """

    def __init__(self, walle: Running, files: Secured) -> None:
        self.walle, self.files = walle, files

    async def call(self, who: str, request: Message) -> tuple[int, dict[str, Any]]:
        """Status and answer of a call by HTTP with JSON."""
        name = type(request).__name__.removesuffix("Request")
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.files.issuer.token(who)}"}
        async with httpx.AsyncClient(timeout=20, verify=False) as http:
            url = f"https://{self.walle.address}/walle.v1.WalleService/{name}"
            response = await http.post(url, content=json_format.MessageToJson(request), headers=headers)
        return response.status_code, response.json()

    async def raw(self, who: str, request: Message) -> tuple[int, str]:
        """The same in protobuf's binary encoding, which takes what JSON refuses; the answer as far as it is text."""
        name = type(request).__name__.removesuffix("Request")
        headers = {"content-type": "application/proto", "authorization": f"Bearer {self.files.issuer.token(who)}"}
        async with httpx.AsyncClient(timeout=20, verify=False) as http:
            url = f"https://{self.walle.address}/walle.v1.WalleService/{name}"
            response = await http.post(url, content=request.SerializeToString(), headers=headers)
        return response.status_code, response.text

    async def status(self, who: str, request: Message) -> int:
        return (await self.call(who, request))[0]


@asynccontextmanager
async def guarded(folder: Path, file: FileConfig | None = None, audit: Path | None = None) -> AsyncIterator[Guarded]:
    """`audit`: the audit log, instead of one that can be written."""
    files = Secured(folder)
    files.policy.write_text(POLICY)
    files.audit = audit or files.audit
    security = security_of(files.given(), SystemClock(), None)
    async with running(file=file, security=security) as walle:
        yield Guarded(walle, files)
