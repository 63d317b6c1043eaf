"""A service's description, edited over HEAD: what changes is shown and checked before it is stored."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from console.backends.asking import Trouble, good, missing, status_of, troubles
from console.backends.controllers import NannyClient, request_id
from console.backends.servers import Servers
from console.pages.orders import authorship, result_redirect
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views.snapshots import difference
from console.views.urls import url
from nannypb.v1 import service_pb2 as pb

MOST_EDITED: Final = 200_000  # bytes of a description


def content_mark(content: bytes) -> str:
    """Return a mark that this content, and no other, was compared with HEAD."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class EditPages:
    """`/services/{service}/edit`."""

    def __init__(self, servers: Servers) -> None:
        self._nanny = servers.nanny

    def routes(self) -> list[Route]:
        """Its addresses."""
        here = "/services/{service}/edit"
        return [Route("GET", here, self.form), Route("POST", here, self.send)]

    async def form(self, visit: Visit, service: str) -> TemplatePage:
        """HEAD's description, to be changed."""
        if self._nanny is None:
            return TemplatePage(
                "missing.html", service, {"service": service, "troubles": [missing("Nanny", "--nanny")]}
            )
        asked, known, may = await asyncio.gather(
            self._nanny.snapshot(service, ""), self._nanny.service(service), self._nanny.may(service)
        )
        head = good(asked, pb.GetSnapshotResponse()).snapshot
        if _is_absent(asked):  # no such service, or one without snapshots: it begins here
            return self._page(
                service,
                head,
                b"",
                may_change=may[0],
                found=[] if _is_absent(known) else troubles(known),
                asked=known,
                is_new=_is_absent(known),
                is_first=not isinstance(known, Trouble),
            )
        return self._page(service, head, head.content, may_change=may[0], found=troubles(asked), asked=asked)

    async def send(self, visit: Visit, service: str) -> TemplatePage | Redirect:
        """Check, compare with HEAD; store only what was compared."""
        back = url("services", service, "snapshots")
        if self._nanny is None:
            return result_redirect(back, missing("Nanny", "--nanny"), "")
        if visit.form.get("step") == "create":
            return await self._create(self._nanny, visit, service)
        content = _content(visit)
        request = pb.CreateSnapshotRequest(
            service_id=service,
            content=content,
            parent=visit.form.get("head", ""),
            by=authorship(visit),
            request_id=request_id(visit.form.get("request_id", "")),
        )
        failed: Trouble | None = None
        step = visit.form.get("step")
        if step == "check":  # while it is typed
            request.validate_only = True
            refused = await self._nanny.order("CreateSnapshot", request)
            return Redirect(url("services", service, "edit"), failed=refused.text if refused is not None else "")
        if step in ("store", "prepare") and visit.form.get("compared") == content_mark(content):
            failed = await self._head_by_now(self._nanny, request) or await self._nanny.order("CreateSnapshot", request)
            if failed is None and step == "prepare":
                return await self._prepare(self._nanny, request)
            if failed is None or failed.kind == "denied":
                return result_redirect(back, failed, "Stored as the new HEAD. It runs nowhere until you activate it.")
        return await self._comparison_page(self._nanny, visit, request, failed)

    async def _prepare(self, nanny: NannyClient, stored: pb.CreateSnapshotRequest) -> Redirect:
        """Order the stored snapshot PREPARED, and show its own page, where single instances get targets."""
        service, made = stored.service_id, "Stored as the new HEAD"
        asked = await nanny.snapshot(service, "")
        head = good(asked, pb.GetSnapshotResponse()).snapshot
        back = url("services", service, "snapshots")
        if head.content != stored.content:
            return Redirect(back, failed=f"{made}, but there is another HEAD by now: nothing was prepared.")
        request = pb.SetTargetRequest(
            service_id=service,
            snapshot_id=head.id,
            target=pb.TARGET_PREPARED,
            by=stored.by,
            request_id=f"{stored.request_id}-prepare",
        )
        if failed := await nanny.order("SetTarget", request):
            return Redirect(back, failed=f"{made}, but not prepared: {failed.text}")
        said = f"{made}; its files are brought to the nodes. Then \N{GEAR} runs it on one instance alone."
        return Redirect(url("services", service, "snapshots", head.id), done=said)

    async def _head_by_now(self, nanny: NannyClient, request: pb.CreateSnapshotRequest) -> Trouble | None:
        """Why a first description is not stored: there is a HEAD by now. Nanny checks only a parent that is named."""
        if request.parent:
            return None
        asked = await nanny.snapshot(request.service_id, "")
        if isinstance(asked, Trouble):
            return None if asked.kind == "absent" else asked
        return Trouble("Nanny", "failed", "There is a HEAD by now", "What is below is compared with it.")

    async def _create(self, nanny: NannyClient, visit: Visit, service: str) -> Redirect:
        """Create the service, without a snapshot."""
        request = pb.CreateServiceRequest(
            service_id=service, by=authorship(visit), request_id=request_id(visit.form.get("request_id", ""))
        )
        failed = await nanny.order("CreateService", request)
        return result_redirect(
            url("services", service, "edit"), failed, f"{service} exists now. Write its description."
        )

    async def _comparison_page(
        self, nanny: NannyClient, visit: Visit, request: pb.CreateSnapshotRequest, failed: Trouble | None
    ) -> TemplatePage:
        """The form again, as it was typed, with what it would change."""
        request.validate_only = True
        asked, may, refused = await asyncio.gather(
            nanny.snapshot(request.service_id, request.parent),
            nanny.may(request.service_id),
            nanny.order("CreateSnapshot", request),
        )
        head = good(asked, pb.GetSnapshotResponse()).snapshot
        is_first = not request.parent and _is_absent(asked)
        changes = await asyncio.to_thread(difference, head, pb.Snapshot(id="edited", content=request.content))
        return self._page(
            request.service_id,
            head,
            request.content,
            may_change=may[0],
            found=troubles(failed, refused) if is_first else troubles(asked, failed, refused),
            asked=pb.GetSnapshotResponse() if is_first else asked,
            is_first=is_first,
            changes=changes,
            is_right=refused is None,
            typed=visit.form,
        )

    def _page(
        self,
        service: str,
        head: pb.Snapshot,
        content: bytes,
        *,
        may_change: bool,
        found: Sequence[Trouble],
        asked: object,
        changes: Sequence[tuple[str, str]] | None = None,
        is_right: bool = False,
        is_new: bool = False,
        is_first: bool = False,
        typed: Mapping[str, str] | None = None,
    ) -> TemplatePage:
        is_text = len(content) <= MOST_EDITED and content.decode("utf-8", "replace").encode() == content
        shown = {
            "service": service,
            "head": head,
            "content": content.decode("utf-8", "replace"),
            "is_text": is_text,
            "mark": content_mark(content),
            "changes": changes,
            "is_right": is_right,
            "is_new": is_new,
            "is_first": is_first,
            "may_change": may_change,
            "typed": typed or {},
            "troubles": found,
        }
        return TemplatePage("edit.html", f"Edit {service}", shown, status_of(service if is_first else head.id, asked))


def _is_absent(answer: object) -> bool:
    return isinstance(answer, Trouble) and answer.kind == "absent"


def _content(visit: Visit) -> bytes:
    """The form's text with line ends as an editor writes them: browsers send CRLF. Raises BadPageRequest."""
    text = visit.form.get("content", "").replace("\r\n", "\n")
    if not text or len(text.encode()) > MOST_EDITED:
        raise BadPageRequest(400, f"content: write a description of at most {MOST_EDITED} bytes")
    return f"{text}\n".encode()
