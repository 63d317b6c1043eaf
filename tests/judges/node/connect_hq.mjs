// connect-node against a real HQ: node connect_hq.mjs DESCRIPTORS URL [CA [AUTHORIZATION]]

import { createClient } from "@connectrpc/connect";
import { check, end } from "./cases.mjs";
import { serviceOf } from "./descriptors.mjs";
import { judged } from "./hq.mjs";
import { transports } from "./transports.mjs";

const [descriptors, baseUrl, ca, authorization] = process.argv.slice(2);
const service = serviceOf(descriptors, "hq.v1.InstanceService");
for (const [name, transport] of transports(baseUrl, ca, authorization)) {
  const client = createClient(service, transport);
  for (const [what, run] of judged(client)) await check(`${name} ${what}`, run);
}
end();
