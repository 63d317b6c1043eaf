// All kinds of calls with connect-node on grpc.testing.TestService: node connect_testing.mjs DESCRIPTORS URL [CA]

import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { check, end, same } from "./cases.mjs";
import { serviceOf } from "./descriptors.mjs";
import { transports } from "./transports.mjs";

const [descriptors, baseUrl, ca] = process.argv.slice(2);
const service = serviceOf(descriptors, "grpc.testing.TestService");
const SIZES = [31415, 9, 2653, 58979];
const INITIAL = "x-grpc-test-echo-initial";
const TRAILING = "x-grpc-test-echo-trailing-bin";

const output = (sizes, more = {}) => ({ responseParameters: sizes.map((size) => ({ size })), ...more });
const sizeOf = (answer) => answer.payload?.body.length ?? 0;

async function* each(requests) {
  yield* requests;
}

async function sizesOf(answers) {
  const sizes = [];
  for await (const answer of answers) sizes.push(sizeOf(answer));
  return sizes;
}

/** It ends with this code, and this message if one is given. */
async function ends(going, code, message) {
  const error = ConnectError.from(await going.then((answer) => answer, (reason) => reason));
  same(Code[error.code], Code[code], `code of ${error}`);
  if (message !== undefined) same(error.rawMessage, message, "message");
}

for (const [name, transport, bidi] of transports(baseUrl, ca)) {
  const client = createClient(service, transport);
  const say = (what, run) => check(`${name} ${what}`, run);
  await say("empty_unary", () => client.emptyCall({}));
  await say("large_unary", async () => {
    const request = { responseSize: 314159, payload: { body: new Uint8Array(271828) } };
    same(sizeOf(await client.unaryCall(request)), 314159);
  });
  await say("cacheable_unary", async () => same(sizeOf(await client.cacheableUnaryCall({ responseSize: 77 })), 77));
  await say("server_streaming", async () => same(await sizesOf(client.streamingOutputCall(output(SIZES))), SIZES));
  await say("client_streaming", async () => {
    const requests = SIZES.map((size) => ({ payload: { body: new Uint8Array(size) } }));
    same((await client.streamingInputCall(each(requests))).aggregatedPayloadSize, 93056);
  });
  await say("half_duplex", async () => same(await sizesOf(client.halfDuplexCall(each([output(SIZES)]))), SIZES));
  if (bidi)
    await say("ping_pong", async () => {
      let answered;
      async function* requests() {
        for (const size of SIZES) {
          const answer = new Promise((resolve) => (answered = resolve));
          yield output([size]);
          await answer;
        }
      }
      const sizes = [];
      for await (const answer of client.fullDuplexCall(requests())) {
        sizes.push(sizeOf(answer));
        answered();
      }
      same(sizes, SIZES);
    });
  await say("empty_stream", async () => same(await sizesOf(client.fullDuplexCall(each([]))), []));
  await say("custom_metadata", async () => {
    const seen = {};
    await client.unaryCall(
      { responseSize: 10 },
      {
        headers: { [INITIAL]: "test_initial_metadata_value", [TRAILING]: "q6ur" },
        onHeader: (headers) => (seen.initial = headers.get(INITIAL)),
        onTrailer: (trailers) => (seen.trailing = trailers.get(TRAILING)),
      },
    );
    same(seen, { initial: "test_initial_metadata_value", trailing: "q6ur" });
  });
  const responseStatus = { code: 2, message: "\t\ntest ☺ and 😈\t\n" };
  await say("status of a call", () => ends(client.unaryCall({ responseStatus }), Code.Unknown, responseStatus.message));
  await say("status of a stream", () =>
    ends(sizesOf(client.streamingOutputCall({ responseStatus })), Code.Unknown, responseStatus.message));
  await say("unimplemented_method", () => ends(client.unimplementedCall({}), Code.Unimplemented));
  await say("timeout", () => {
    const slow = { responseParameters: [{ size: 1, intervalUs: 5_000_000 }] };
    return ends(sizesOf(client.streamingOutputCall(slow, { timeoutMs: 200 })), Code.DeadlineExceeded);
  });
  await say("cancel_after_first_response", () => {
    const stop = new AbortController();
    const request = { responseParameters: [{ size: 9 }, { size: 9, intervalUs: 5_000_000 }] };
    const read = async () => {
      for await (const _ of client.streamingOutputCall(request, { signal: stop.signal })) stop.abort();
    };
    return ends(read(), Code.Canceled);
  });
  await say("many_at_once", async () => {
    const sizes = [...Array(200).keys()];
    const answers = await Promise.all(sizes.map((size) => client.unaryCall({ responseSize: size })));
    same(answers.map(sizeOf), sizes);
  });
}
end();
