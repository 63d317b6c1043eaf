// @grpc/grpc-js-xds: calls a target again and again, and prints who answers: `ok` and the answer, or `error`.
//
//   node xds_caller.mjs TARGET INTERVAL_MS
import grpc from "@grpc/grpc-js";
import xds from "@grpc/grpc-js-xds";

xds.register();
const [target, interval] = process.argv.slice(2);

// google.protobuf.Empty and StringValue, as bytes: an empty message, and field 1 with a length.
const definition = {
  Who: {
    path: "/judged.Who/Who",
    requestStream: false,
    responseStream: false,
    requestSerialize: () => Buffer.alloc(0),
    requestDeserialize: () => null,
    responseSerialize: () => Buffer.alloc(0),
    responseDeserialize: (bytes) => bytes.subarray(2).toString(),
  },
};
const Client = grpc.makeGenericClientConstructor(definition, "Who");
const client = new Client(target, grpc.credentials.createInsecure());
const call = () =>
  client.Who(null, { deadline: Date.now() + 20000 }, (error, who) => {
    console.log(error ? `error ${error.message.replaceAll("\n", " ")}` : `ok ${who}`);
    setTimeout(call, Number(interval));
  });
call();
