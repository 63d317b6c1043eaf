"""The targets for clients that request all, and the cluster that a route to a service takes.

A service is listed at its own port; again at a port, or with a label, that says HTTP/2 (Envoy has to know before it
connects). What was listed stays until every location has said that it is gone: clients delete what a list lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from gateways.picture.picture import EndpointView
from gateways.xds.targets import http2_name


class _ListedService(NamedTuple):
    """The names of a service's targets, and that of the cluster for a route to it."""

    names: frozenset[str]
    cluster: str


_MOST_CHANGED: Final = 1_000
_NOTHING: Final = _ListedService(frozenset(), "")


class XdsListing:
    """Made when it is read: most gateways have no client that requests all."""

    def __init__(self, picture: EndpointView) -> None:
        self._picture = picture
        self._services: dict[str, _ListedService] = {}
        self._names: frozenset[str] = frozenset()
        self._clusters: dict[str, str] = {}
        self._changed: set[str] = {*picture.services}
        picture.listen(self._on_services_changed)

    @property
    def names(self) -> Collection[str]:
        """All targets."""
        self._update()
        return self._names

    @property
    def clusters(self) -> Mapping[str, str]:
        """The target of each service's route."""
        self._update()
        return self._clusters

    def _on_services_changed(self, services: Collection[str]) -> None:
        self._changed.update(services or {*self._picture.services, *self._services})
        if len(self._changed) > _MOST_CHANGED + 2 * len(self._picture.services):
            self._update()  # names of services that came and went must not pile up where nobody reads

    def _update(self) -> None:
        changed, self._changed = self._changed, set()
        is_other = False
        for service in changed:
            before, after = self._services.get(service, _NOTHING), self._look(service)
            is_other = is_other or before != after
            if after.names:
                self._services[service] = after
            else:
                self._services.pop(service, None)
        if is_other:
            self._names = frozenset(name for one in self._services.values() for name in one.names)
            self._clusters = {service: one.cluster for service, one in self._services.items()}

    def _look(self, service: str) -> _ListedService:
        before = self._services.get(service, _NOTHING)
        known = self._picture.instances(service)
        is_complete = self._picture.coverage.is_complete
        if not known:
            return _NOTHING if is_complete else before
        http2 = {http2_name(one) for one in known.values()}
        # Where instances differ, the route is to all of them: at a part of them there may be nobody ready.
        cluster = service if len(http2) > 1 else next(iter(http2)) or service
        names = {service, *http2} - {""}
        return _ListedService(frozenset(names if is_complete else names | before.names), cluster)
