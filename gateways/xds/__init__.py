"""HQ as an xDS server for proxyless gRPC and Envoy: `xds:///web` calls the ready instances of `web`.

`targets` says what a resource's name means; `fixed_resources` are made of names alone, `resources` adds the endpoints,
encoded once for all clients; `listing` is all there is, `responses` the answers. `subscriptions` is the state of one
stream that is told the state of the world, `delta` of one that is told what differs, both without I/O, on `stream`;
`ads` is the call.
"""
