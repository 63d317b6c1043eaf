"""The console as a site: a request is checked, and answered by its page and cookies."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final
from weakref import WeakValueDictionary

from console.backends.asking import TOKEN, SignInNeeded
from console.site import sealing
from console.site.cookies import Jar
from console.site.live import MAX_PAGES, Fragments, LivePages
from console.site.rendering import Templates
from console.site.sealing import Seal
from console.site.shield import ALWAYS, Shield
from console.site.statics import Statics
from console.site.visits import BadPageRequest, Redirect, Routes, TemplatePage, Visit, chosen, fields
from console.views.urls import url
from serving.standard.site import SiteAnswer, SiteRequest

log = logging.getLogger(__name__)

_HTML: Final = (b"content-type", b"text/html; charset=utf-8")
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_NO_STORE: Final = (b"cache-control", b"no-store")
_LATER: Final = (b"retry-after", b"30")
_EVENTS: Final = (b"content-type", b"text/event-stream")
MOST_AT_ONCE: Final = 6  # pages of one session, as many as a browser has connections: further ones wait their turn


class App:
    """Answers every request. `shield` is set once it is known where the console listens."""

    shield: Shield
    max_body_bytes: Final = 1 << 20  # a description of MOST_EDITED bytes, encoded as a form

    def __init__(
        self, routes: Routes, templates: Templates, seal: Seal, wall_s: Callable[[], float], *, is_open: bool
    ) -> None:
        """`is_open`: visitors who are not signed in see what the servers show to anybody."""
        self.is_open = is_open
        self._routes, self._templates, self._seal, self._wall_s = routes, templates, seal, wall_s
        self._statics = Statics()
        self._live = LivePages(self._fragments)
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()  # by session

    async def __call__(self, request: SiteRequest) -> SiteAnswer:
        """Every error is a page, too."""
        jar = Jar(self._seal, request.headers.get(b"cookie", b""))
        TOKEN.set(jar.token)
        try:
            return await self._answer(request, jar)
        except BadPageRequest as refused:
            return self._error(request, jar, refused.status, str(refused))
        except SignInNeeded as needed:
            return self._to_sign_in(request, jar, str(needed))
        except Exception:
            mark = secrets.token_hex(4)
            log.exception("cannot render the page %s (error %s)", request.path, mark)
            text = f"internal error {mark}: see the console's log"
            return self._error(request, jar, 500, text)

    async def _answer(self, request: SiteRequest, jar: Jar) -> SiteAnswer:
        self.shield.check(request.method, request.authority, request.headers)
        if request.path.startswith("/static/") and request.method in ("GET", "HEAD"):
            return self._statics.answer(request.path, request.headers, ALWAYS)
        if not (self.is_open or jar.token or request.path == "/signin"):
            raise SignInNeeded("sign in first")
        if request.path == "/live" and request.method == "GET":
            return self._stream(request, jar)
        turn = self._turns.setdefault(_session(request, jar), asyncio.Semaphore(MOST_AT_ONCE))
        async with turn:
            return await self._answer_page(request, jar)

    async def _answer_page(self, request: SiteRequest, jar: Jar) -> SiteAnswer:
        visit = self._visit(request, jar)
        if request.method == "POST" and not self._seal.is_form_token(jar.browser, visit.form.get("form_token", "")):
            raise BadPageRequest(403, "this form is too old, or not from a page of this console: open the page again")
        handler, parts = self._routes.find(request.method, request.path)
        result = await handler(visit, **parts)
        if isinstance(result, Redirect):
            return self._redirect(result, request, jar)
        return self._page(result, visit, jar)

    def _visit(self, request: SiteRequest, jar: Jar) -> Visit:
        query = request.query_string.decode("latin-1")
        return Visit(
            path=request.path,
            query=fields(request.query_string),
            form=fields(request.body) if request.method == "POST" else {},
            chosen=chosen(request.body if request.method == "POST" else request.query_string),
            now_s=self._wall_s(),
            token=jar.token,
            flash=jar.flash,
            target=f"{request.path}?{query}" if query else request.path,
            jar=jar,
        )

    def _page(self, page: TemplatePage, visit: Visit, jar: Jar) -> SiteAnswer:
        html, _ = self._templates.render(page, self._about(visit, jar.browser))
        headers = [_HTML, _NO_STORE, *ALWAYS, *jar.headers]
        return SiteAnswer(page.status, headers, html.encode("utf-8", "replace"))

    def _about(self, visit: Visit, browser: str) -> dict[str, Any]:
        """Return the values that every template gets."""
        return {
            "now_s": visit.now_s,
            "path": visit.path,
            "target": visit.target,
            "who": sealing.subject(visit.token) if visit.token else "",
            "is_signed_in": bool(visit.token),
            "flash": visit.flash,
            "form_token": self._seal.form_token(browser),
            "query": visit.query,
        }

    def _redirect(self, result: Redirect, request: SiteRequest, jar: Jar) -> SiteAnswer:
        if _is_dialog(request):
            return self._to_dialog(result, jar)
        if result.done or result.failed:
            jar.say("done" if result.done else "failed", result.done or result.failed)
        to = result.to.encode("ascii", "ignore")
        return SiteAnswer(303, [(b"location", to), _NO_STORE, *ALWAYS, *jar.headers])

    def _to_dialog(self, result: Redirect, jar: Jar) -> SiteAnswer:
        """Tell a dialog where to go, or the failure, which it shows itself."""
        if result.failed and not result.to.startswith("/signin"):
            return SiteAnswer(409, [_TEXT, _NO_STORE, *ALWAYS, *jar.headers], result.failed.encode("utf-8", "replace"))
        if result.done or result.failed:
            jar.say("done" if result.done else "failed", result.done or result.failed)
        return SiteAnswer(200, [_TEXT, _NO_STORE, *ALWAYS, *jar.headers], result.to.encode("ascii", "ignore"))

    def _error(self, request: SiteRequest, jar: Jar, status: int, text: str) -> SiteAnswer:
        if _is_dialog(request):
            return SiteAnswer(status, [_TEXT, _NO_STORE, *ALWAYS, *jar.headers], text.encode("utf-8", "replace"))
        visit = Visit(request.path, now_s=self._wall_s(), token=jar.token, target=request.path)
        return self._page(
            TemplatePage("error.html", f"Error {status}", {"status": status, "text": text}, status), visit, jar
        )

    def _to_sign_in(self, request: SiteRequest, jar: Jar, why: str) -> SiteAnswer:
        query = request.query_string.decode("latin-1")
        back = f"{request.path}?{query}" if query and request.method == "GET" else request.path
        failed = f"The server did not accept your token: {why}" if jar.token else ""
        return self._redirect(Redirect(url("signin", to=back), failed=failed), request, jar)

    # --- live ---

    def _stream(self, request: SiteRequest, jar: Jar) -> SiteAnswer:
        asked = request.query_string.decode("latin-1").split("&")
        pages = [fields(one.encode())["page"] for one in asked if one.startswith("page=")]
        if not pages or len(pages) > MAX_PAGES:
            raise BadPageRequest(400, f"name 1 to {MAX_PAGES} pages")
        session = _session(request, jar)
        status, why = self._live.refusal(session)
        if status:
            return SiteAnswer(status, [_TEXT, _NO_STORE, _LATER, *ALWAYS], why.encode())
        stream = self._until_asked(jar.token, pages, session)
        return SiteAnswer(200, [_EVENTS, _NO_STORE, *ALWAYS], stream=stream)

    async def _until_asked(self, token: str, pages: Sequence[str], session: str) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._live.stream(token, pages, session)) as events:
                async for event in events:
                    yield event
        except SignInNeeded:
            yield b"event: signin\ndata: {}\n\n"

    async def _fragments(self, token: str, target: str) -> Fragments:
        """A page's fragments, for browsers that already show it; none if the address is not a page's, or no longer."""
        TOKEN.set(token)
        path, _, query = target.partition("?")
        visit = Visit(path, fields(query.encode("ascii", "ignore")), now_s=self._wall_s(), token=token, target=target)
        try:
            handler, parts = self._routes.find("GET", path)
            page = await handler(visit, **parts)
        except BadPageRequest:
            return {}
        if isinstance(page, Redirect):
            return {}
        return self._templates.render(page, self._about(visit, ""))[1]


def _session(request: SiteRequest, jar: Jar) -> str:
    """Whose request it is: a person's, whichever token was brought, else a browser's, else an address's."""
    return sealing.subject(jar.token) or jar.token or jar.returning or request.call.host


def _is_dialog(request: SiteRequest) -> bool:
    """Whether the form comes from a dialog of an open page, which stays open if the order fails."""
    return request.method == "POST" and b"x-dialog" in request.headers
