"""The messages of xDS that proxyless gRPC clients need, generated from the .proto file beside this one."""
