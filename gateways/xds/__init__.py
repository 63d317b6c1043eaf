"""HQ as an xDS server for proxyless gRPC: `xds:///web` calls the ready instances of `web`.

`targets` says what a resource's name means; `resources` makes the four resources of a target, encoded once for all
clients; `subscriptions` is the state of one stream (ADS, state of the world), without I/O; `ads` is the call.
"""
