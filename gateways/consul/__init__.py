"""The read side of Consul's HTTP API over HQ: what consul-template, Prometheus, Traefik and the client libraries use.

`questions` reads a request; `answers` makes its JSON from the picture, `render` that of one instance; `indexes` are
Consul's: they change with what was asked about, and wake blocking queries; `api` combines them as a site of `serving`.
Writes are refused with a message: they concern an agent's local state, which HQ does not have.
"""
