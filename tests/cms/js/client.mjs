// A client of the CMS API, written by hand from its description: what an automaton that heals hosts does with one host.
// node client.mjs http://127.0.0.1:7280/v1.4 HOST  ->  one line of JSON per step

const [base, host] = process.argv.slice(2);
const id = `js-${process.pid}`;
const say = (step, value) => console.log(JSON.stringify({ step, ...value }));

async function call(method, path, body) {
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(10_000), // the protocol's own limit
  });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? null : JSON.parse(text) };
}

function check(verdict) {
  const { id: named, hosts, status, message } = verdict;
  if (typeof named !== "string" || !Array.isArray(hosts) || typeof message !== "string") throw new Error("not the schema");
  if (!["ok", "in-process", "rejected"].includes(status)) throw new Error(`status ${status}`);
  return status;
}

const task = { id, type: "automated", issuer: "js", action: "reboot", hosts: [host], comment: "ядро", extra: { a: 1 } };

const dry = await call("POST", "/tasks?dry_run=true", task);
say("dry", { status: check(dry.body) });

let verdict = (await call("POST", "/tasks/", task)).body;
for (let tries = 0; check(verdict) === "in-process" && tries < 100; tries += 1) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  verdict = (await call("GET", `/tasks/${id}`)).body;
}
say("asked", { status: verdict.status });

const listed = (await call("GET", "/tasks")).body.result;
say("listed", { found: listed.filter((one) => one.id === id).length });

const conflict = await call("POST", "/tasks", { ...task, hosts: ["elsewhere"] });
say("conflict", { status: conflict.status, words: typeof conflict.body.message });

const gone = await call("DELETE", `/tasks/${id}`);
const after = await call("GET", `/tasks/${id}`);
say("deleted", { status: gone.status, after: after.status });
