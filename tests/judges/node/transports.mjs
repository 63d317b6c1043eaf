// Every way in which connect-node can call a server.

import { readFileSync } from "node:fs";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";

/** Name and transport of each; only those over HTTP/2 can do bidirectional streams. */
export function transports(baseUrl, ca, authorization = "") {
  const nodeOptions = ca ? { ca: readFileSync(ca) } : {};
  const interceptors = [
    (next) => (request) => {
      if (authorization) request.header.set("authorization", authorization);
      return next(request);
    },
  ];
  const shared = { baseUrl, nodeOptions, interceptors };
  const gzip = { acceptCompression: [compressionGzip], sendCompression: compressionGzip, compressMinBytes: 1 };
  const two = { ...shared, httpVersion: "2" };
  const one = { ...shared, httpVersion: "1.1" };
  return [
    ["Connect HTTP/1.1", createConnectTransport(one), false],
    ["Connect HTTP/1.1 binary, by GET", createConnectTransport({ ...one, useBinaryFormat: true, useHttpGet: true }), false],
    ["Connect HTTP/2", createConnectTransport(two), true],
    ["Connect HTTP/2 binary, gzip", createConnectTransport({ ...two, ...gzip, useBinaryFormat: true }), true],
    ["gRPC", createGrpcTransport(two), true],
    ["gRPC gzip", createGrpcTransport({ ...two, ...gzip }), true],
    ["gRPC-Web HTTP/1.1", createGrpcWebTransport(one), false],
    ["gRPC-Web HTTP/1.1 gzip", createGrpcWebTransport({ ...one, ...gzip }), false],
    ["gRPC-Web HTTP/2", createGrpcWebTransport(two), true],
  ];
}
