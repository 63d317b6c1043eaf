// Opens many watches at once, by grpc-js, and tells how each of them went: node watches.mjs PORT CONNECTIONS WATCHES REQUEST

import grpc from "@grpc/grpc-js";

const [port, connections, watches, request] = process.argv.slice(2);
const PATIENCE_MS = 60_000;
const same = (bytes) => bytes;
const options = { "grpc.use_local_subchannel_pool": 1 };
const clients = [...Array(Number(connections))].map(
  () => new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), options),
);
const message = Buffer.from(request, "hex");
const path = "/hq.v1.InstanceService/WatchInstances";

function open(client) {
  return new Promise((resolve) => {
    const deadline = Date.now() + PATIENCE_MS;
    const call = client.makeServerStreamRequest(path, same, same, message, new grpc.Metadata(), { deadline });
    call.on("data", () => resolve("served"));
    call.on("error", (error) => {
      const details = Buffer.concat(error.metadata?.get("grpc-status-details-bin") ?? []);
      const code = grpc.status[error.code];
      resolve(details.includes("google.rpc.RetryInfo") ? `${code} with RetryInfo` : `${code}: ${error.details}`);
    });
    call.on("end", () => resolve("ended without a message"));
  });
}

const counts = {};
for (const how of await Promise.all([...Array(Number(watches)).keys()].map((i) => open(clients[i % clients.length])))) {
  counts[how] = (counts[how] ?? 0) + 1;
}
console.log(JSON.stringify(counts));
process.exit(0);
