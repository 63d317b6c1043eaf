"""A service's attributes, edited as YAML: what changes is shown before it is stored, over the version that was read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml
from google.protobuf import json_format

from console.backends.asking import Trouble, good, missing, status_of, troubles
from console.backends.controllers import NannyClient, request_id
from console.backends.servers import Servers
from console.pages.editing import content_mark
from console.pages.orders import authorship, result_redirect
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views.snapshots import text_difference
from console.views.urls import url
from hqcli.documents import BadDocument, value_of
from nannypb.v1 import service_pb2 as pb

_MOST: Final = 100_000  # characters


class AttributePages:
    """`/services/{service}/attributes`."""

    def __init__(self, servers: Servers) -> None:
        self._nanny = servers.nanny

    def routes(self) -> list[Route]:
        """Its addresses."""
        here = "/services/{service}/attributes"
        return [Route("GET", here, self.form), Route("POST", here, self.send)]

    async def form(self, visit: Visit, service: str) -> TemplatePage:
        """The attributes as they are, to be changed."""
        if self._nanny is None:
            return TemplatePage(
                "missing.html", service, {"service": service, "troubles": [missing("Nanny", "--nanny")]}
            )
        return await self._page(self._nanny, service, {})

    async def send(self, visit: Visit, service: str) -> TemplatePage | Redirect:
        """Show what would change; store only what was shown, over the version that was read."""
        back, form = url("services", service, "snapshots"), visit.form
        if self._nanny is None:
            return result_redirect(back, missing("Nanny", "--nanny"), "")
        version = form.get("info_version", "")
        if not re.fullmatch(r"\d{1,18}", version):
            raise BadPageRequest(400, "info_version: send the one that the page has")
        text = form.get("content", "").replace("\r\n", "\n")
        if form.get("step") != "store" or form.get("compared") != content_mark(text.encode()):
            return await self._page(self._nanny, service, form)
        try:
            info = attributes_of(text)
        except BadDocument:
            return await self._page(self._nanny, service, form)
        request = pb.UpdateServiceRequest(
            service_id=service,
            info=info,
            by=authorship(visit),
            request_id=request_id(form.get("request_id", "")),
            info_version=int(version),
        )
        failed = await self._nanny.order("UpdateService", request)
        if failed is None or failed.kind == "denied":
            return result_redirect(back, failed, "The attributes are stored; what is under way goes on as it began.")
        return await self._page(self._nanny, service, form, failed)

    async def _page(
        self, nanny: NannyClient, service: str, typed: Mapping[str, str], failed: Trouble | None = None
    ) -> TemplatePage:
        """The form; where something was typed, with what it would change."""
        asked, may = await asyncio.gather(nanny.service(service), nanny.may(service))
        found = good(asked, pb.GetServiceResponse()).service
        is_there = not isinstance(asked, Trouble)
        now = text_of(found.info)
        text, changes, fault = typed.get("content", now).replace("\r\n", "\n"), None, ""
        if typed:
            try:
                changes = text_difference(now, text_of(attributes_of(text)))
            except BadDocument as error:
                fault = str(error)
        shown = {
            "service": service,
            "is_there": is_there,
            "content": text,
            "mark": content_mark(text.encode()),
            "info_version": typed.get("info_version", found.info_version),
            "changes": changes,
            "fault": fault,
            "may_change": may[0],
            "typed": typed,
            "troubles": troubles(asked, failed),
        }
        return TemplatePage("attributes.html", f"Attributes of {service}", shown, status_of(is_there, asked))


def text_of(info: pb.InfoAttributes) -> str:
    """Attributes as YAML, with the names of the fields; those that have their default are left out."""
    known = json_format.MessageToDict(info, preserving_proto_field_name=True)
    return yaml.safe_dump(known, sort_keys=False, allow_unicode=True) if known else ""


def attributes_of(text: str) -> pb.InfoAttributes:
    """The attributes in YAML as `text_of` writes it. Raises BadDocument: where and why."""
    if len(text) > _MOST:
        raise BadDocument(f"write at most {_MOST} characters")
    value: Any = value_of(text)
    if value is not None and not isinstance(value, dict):
        raise BadDocument("write `name: value` in each line")
    try:
        return json_format.ParseDict(value or {}, pb.InfoAttributes())
    except (json_format.ParseError, ValueError, TypeError) as error:
        raise BadDocument(str(error)) from None
