// Calls to HQ that Node and a browser make alike; it has the instances web-1, web-2, web-3.

import { Code, ConnectError } from "@connectrpc/connect";

function must(fits, what) {
  if (!fits) throw new Error(String(what));
}

/** What is checked, and how. */
export function judged(client) {
  return [
    [
      "a call",
      async () => {
        const { instance } = await client.getInstance({ id: "web-1" });
        must(instance.meta.id === "web-1", instance.meta.id);
      },
    ],
    [
      "a page",
      async () => {
        const answer = await client.findInstances({ filter: { serviceId: ["web"] } });
        must(answer.instances.map((each) => each.meta.id).join() === "web-1,web-2,web-3", answer.instances.length);
      },
    ],
    [
      "no such instance",
      async () => {
        const error = ConnectError.from(await client.getInstance({ id: "web-9" }).catch((reason) => reason));
        must(error.code === Code.NotFound, error);
        must(error.details.length > 0, "the error has no details");
      },
    ],
    [
      "a watch",
      async () => {
        const stop = new AbortController();
        let seen = 0;
        try {
          for await (const _ of client.watchInstances({}, { signal: stop.signal })) {
            seen += 1;
            stop.abort();
          }
        } catch (reason) {
          must(ConnectError.from(reason).code === Code.Canceled, reason);
        }
        must(seen > 0, "it said nothing");
      },
    ],
    [
      "a hundred at once",
      async () => {
        const answers = await Promise.all([...Array(100)].map(() => client.getInstance({ id: "web-2" })));
        must(answers.every(({ instance }) => instance.meta.id === "web-2"), "another instance");
      },
    ],
  ];
}
