// gRPC's interoperability cases with @grpc/grpc-js: node interop.mjs testing.proto PORT [CA]

import { readFileSync } from "node:fs";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { check, end, same } from "./cases.mjs";

const [proto, port, ca] = process.argv.slice(2);
const { testing } = grpc.loadPackageDefinition(loadSync(proto, { keepCase: true })).grpc;
const credentials = ca ? grpc.credentials.createSsl(readFileSync(ca)) : grpc.credentials.createInsecure();
const address = `${ca ? "localhost" : "127.0.0.1"}:${port}`;
const options = { "grpc.max_receive_message_length": -1 };
const client = new testing.TestService(address, credentials, options);
const gzipped = new testing.TestService(address, credentials, { ...options, "grpc.default_compression_algorithm": 2 });

const REQUESTS = [27182, 8, 1828, 45904];
const ANSWERS = [31415, 9, 2653, 58979];
const SPECIAL = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
const INITIAL = "x-grpc-test-echo-initial";
const TRAILING = "x-grpc-test-echo-trailing-bin";

const payload = (size) => ({ body: Buffer.alloc(size) });
const output = (sizes, more = {}) => ({ response_parameters: sizes.map((size) => ({ size })), ...more });
const sizeOf = (answer) => answer.payload.body.length;

/** One answer, with the metadata on both sides of it. */
function unary(at, method, request, metadata = new grpc.Metadata(), more = {}) {
  return new Promise((resolve, reject) => {
    const seen = {};
    const add = (part) => Object.assign(seen, part).answer && seen.trailing && resolve(seen);
    const call = at[method](request, metadata, more, (error, answer) => (error ? reject(error) : add({ answer })));
    call.on("metadata", (initial) => add({ initial }));
    call.on("status", (status) => add({ trailing: status.metadata }));
  });
}

/** All answers of a stream, and what it said beside them. */
function collected(call, onAnswer = () => {}) {
  return new Promise((resolve, reject) => {
    const seen = { sizes: [] };
    call.on("data", (answer) => {
      seen.sizes.push(sizeOf(answer));
      onAnswer(seen.sizes.length);
    });
    call.on("metadata", (told) => (seen.initial = told));
    call.on("error", reject);
    call.on("status", (status) => status.code === 0 && resolve({ ...seen, trailing: status.metadata }));
  });
}

/** It ends with this code, and this message if one is given. */
async function ends(going, code, message) {
  const error = await going.then(
    () => undefined,
    (reason) => reason,
  );
  if (error === undefined) throw new Error("an answer instead of an error");
  same(error.code, code, `code of ${error}`);
  if (message !== undefined) same(error.details, message, "message");
}

async function uploaded(at) {
  const answer = await new Promise((resolve, reject) => {
    const call = at.StreamingInputCall((error, told) => (error ? reject(error) : resolve(told)));
    for (const size of REQUESTS) call.write({ payload: payload(size) });
    call.end();
  });
  same(answer.aggregated_payload_size, REQUESTS.reduce((a, b) => a + b));
}

function metadata() {
  const told = new grpc.Metadata();
  told.set(INITIAL, "test_initial_metadata_value");
  told.set(TRAILING, Buffer.from("ababab", "hex"));
  return told;
}

function echoed({ initial, trailing }) {
  same(initial.get(INITIAL), ["test_initial_metadata_value"], "initial metadata");
  same(trailing.get(TRAILING).map((value) => value.toString("hex")), ["ababab"], "trailing metadata");
}

function streamOf(requests, told = new grpc.Metadata(), more = {}) {
  const call = client.FullDuplexCall(told, more);
  for (const request of requests) call.write(request);
  return call;
}

await check("empty_unary", () => unary(client, "EmptyCall", {}));
for (const [name, at] of [["large_unary", client], ["client_compressed_unary_noprobe", gzipped]])
  await check(name, async () => {
    const { answer } = await unary(at, "UnaryCall", { response_size: 314159, payload: payload(271828) });
    same(sizeOf(answer), 314159);
  });
await check("server_compressed_unary", async () => {
  const request = { response_size: 314159, response_compressed: { value: true } };
  same(sizeOf((await unary(client, "UnaryCall", request)).answer), 314159);
});
await check("client_streaming", () => uploaded(client));
await check("client_compressed_streaming_noprobe", () => uploaded(gzipped));
await check("server_streaming", async () =>
  same((await collected(client.StreamingOutputCall(output(ANSWERS)))).sizes, ANSWERS));
await check("ping_pong", async () => {
  const call = client.FullDuplexCall();
  const send = (n) => (n < 4 ? call.write(output([ANSWERS[n]], { payload: payload(REQUESTS[n]) })) : call.end());
  const done = collected(call, send);
  send(0);
  same((await done).sizes, ANSWERS);
});
await check("empty_stream", async () => {
  const call = client.FullDuplexCall();
  call.end();
  same((await collected(call)).sizes, []);
});
await check("custom_metadata_unary", async () =>
  echoed(await unary(client, "UnaryCall", { response_size: 314159, payload: payload(271828) }, metadata())));
await check("custom_metadata_stream", async () => {
  const call = streamOf([output([314159], { payload: payload(271828) })], metadata());
  call.end();
  echoed(await collected(call));
});
const status = { code: 2, message: "test status message" };
await check("status_code_and_message_unary", () =>
  ends(unary(client, "UnaryCall", { response_status: status }), 2, status.message));
await check("status_code_and_message_stream", () =>
  ends(collected(streamOf([{ response_status: status }])), 2, status.message));
await check("special_status_message", () =>
  ends(unary(client, "UnaryCall", { response_status: { code: 2, message: SPECIAL } }), 2, SPECIAL));
await check("unimplemented_method", () => ends(unary(client, "UnimplementedCall", {}), 12));
await check("unimplemented_service", () =>
  ends(unary(new testing.UnimplementedService(address, credentials), "UnimplementedCall", {}), 12));
await check("cancel_after_begin", () =>
  ends(
    new Promise((resolve, reject) => {
      client.StreamingInputCall((error, answer) => (error ? reject(error) : resolve(answer))).cancel();
    }),
    1,
  ));
await check("cancel_after_first_response", () => {
  const call = streamOf([output([31415], { payload: payload(27182) })]);
  return ends(collected(call, () => call.cancel()), 1);
});
await check("timeout_on_sleeping_server", () => {
  const slow = { response_parameters: [{ size: 1, interval_us: 5_000_000 }] };
  return ends(collected(streamOf([slow], new grpc.Metadata(), { deadline: Date.now() + 200 })), 4);
});
await check("many_at_once", async () => {
  const sizes = [...Array(300).keys()].map((n) => n + 1);
  const calls = sizes.map((size) => unary(client, "UnaryCall", { response_size: size }));
  same((await Promise.all(calls)).map(({ answer }) => sizeOf(answer)), sizes);
});
end();
