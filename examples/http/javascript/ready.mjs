// The ready instances of a service, then every change: `node ready.mjs web [http://127.0.0.1:7080]`.
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, ConnectError, Code } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { InstanceService, ReadinessFilter, WatchKind } from "./gen/hqpb/v1/service_pb.js";

const [service = "web", baseUrl = "http://127.0.0.1:7080"] = process.argv.slice(2);
const hq = createClient(InstanceService, createConnectTransport({ baseUrl, httpVersion: "1.1" }));
const filter = { serviceId: [service], readiness: ReadinessFilter.READY };

const address = ({ meta, spec }) => {
  const ports = (spec.allocation?.port ?? []).map(({ name, number }) => `${name}=${number}`);
  return [meta.id, spec.allocation?.host || spec.nodeName, ...ports].join(" ");
};

const { instances, sources: [source] } = await hq.findInstances({ filter });
instances.forEach((instance) => console.log(address(instance)));
console.log(`${instances.length} ready, as ${source.replica} knew it at version ${source.version}`);

const told = { put: (instance) => `+ ${address(instance)}`, delete: ({ id }) => `- ${id}`, left: ({ id }) => `- ${id}` };
let resumeToken = "";
for (;;) {
  try {
    for await (const message of hq.watchInstances({ filter, resumeToken })) {
      resumeToken = message.resumeToken || resumeToken;
      // RESYNC: what you hold is void, a fresh snapshot follows. SYNCED: the snapshot is complete from here.
      if ([WatchKind.SYNCED, WatchKind.RESYNC].includes(message.kind)) console.log(WatchKind[message.kind] + (message.reason && `: ${message.reason}`));
      message.events.forEach(({ change }) => console.log(told[change.case](change.value)));
    }
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    console.error(`${Code[code]}: ${rawMessage}`);
    if ([Code.InvalidArgument, Code.Unauthenticated, Code.PermissionDenied].includes(code)) process.exit(1);
  }
  await sleep(500 + 1000 * Math.random()); // then go on where it stopped, at any replica
}
