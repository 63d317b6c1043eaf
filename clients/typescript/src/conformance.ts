// The client under HQ's suite for discovery clients: lines of JSON in, one line each out (docs/client-conformance.md).
import { createInterface } from "node:readline";
import { Discovery, type Endpoint } from "./discovery.js";

let discovery: Discovery | undefined;
let lists: Endpoint[][] = [];

for await (const line of createInterface({ input: process.stdin })) {
  const words = JSON.parse(line);
  let answer: object = {};
  if (words.op === "open") {
    const ms = words.settings;
    lists = [];
    discovery = new Discovery(words.service, words.port, {
      servers: words.servers,
      stateDir: words.state_dir,
      tokenFile: words.token_file,
      ca: words.ca,
      cert: words.cert,
      key: words.key,
      silenceMs: ms.silence_ms,
      staleMs: ms.stale_ms,
      connectMs: ms.connect_ms,
      maxBackoffMs: ms.retry_ms,
      refusedMs: ms.refused_ms,
      saveMs: ms.save_ms,
      believeMs: ms.believe_ms,
      renewMs: ms.renew_ms,
    });
    discovery.onChange = (endpoints) => lists.push(endpoints);
  } else if (words.op === "state" && discovery) {
    const { ageMs, ...status } = discovery.status();
    answer = { ...status, age_s: ageMs === undefined ? null : ageMs / 1e3, endpoints: discovery.endpoints, lists };
    lists = [];
  } else {
    await discovery?.close();
  }
  console.log(JSON.stringify(answer));
}
