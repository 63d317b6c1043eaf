// What runs in the browser: HQ's calls by each of connect-web's protocols.

import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { judged } from "./hq.mjs";

const known = new Map();

/** The names of all cases; `files` is a FileDescriptorSet in base64. */
globalThis.prepare = (files, authorization) => {
  const bytes = Uint8Array.from(atob(files), (character) => character.charCodeAt(0));
  const service = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes)).getService("hq.v1.InstanceService");
  const interceptors = [
    (next) => (request) => {
      if (authorization) request.header.set("authorization", authorization);
      return next(request);
    },
  ];
  const shared = { baseUrl: location.origin, interceptors };
  for (const [name, transport] of [
    ["gRPC-Web", createGrpcWebTransport(shared)],
    ["Connect", createConnectTransport(shared)],
    ["Connect binary, by GET", createConnectTransport({ ...shared, useBinaryFormat: true, useHttpGet: true })],
  ])
    for (const [what, run] of judged(createClient(service, transport))) known.set(`${name} ${what}`, run);
  return [...known.keys()];
};

/** One case; it throws if it fails. */
globalThis.run = async (name) => {
  await known.get(name)();
};
