"""The read side of Consul's HTTP API over HQ: what consul-template, Prometheus, Traefik and the client libraries ask.

`questions` reads a request; `answers` has its JSON from the picture, `render` that of one instance; `indexes` are
Consul's: they move with what was asked about, and wake who waits; `api` puts them together as a site of `serving`.
What writes is refused with a sentence: its meaning is an agent's local state, which HQ does not have.
"""
