// A CMS that misbehaves, written by hand from the description of the API: /MANNER/v1.4/tasks. GET /calls counts them.
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";

const calls = {};
const tasks = new Map();

const json = (status, value, headers = {}) => (response) => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof value === "string" ? value : JSON.stringify(value));
};
const task = (ask, more = {}) => ({ id: ask.id, hosts: ask.hosts ?? ["h1"], status: "ok", ...more });
const without = (ask, name) => Object.fromEntries(Object.entries(task(ask)).filter(([key]) => key !== name));

// Each returns what answers one request.
const manners = {
  "status-in-capitals": (ask) => json(200, task(ask, { status: "OK" })),
  "unknown-status": (ask) => json(200, task(ask, { status: "maybe" })),
  "status-without-end": (ask) => json(200, task(ask, { status: "o".repeat(500_000) })),
  "status-is-a-list": (ask) => json(200, task(ask, { status: ["ok"] })),
  "another-id": (ask) => json(200, task(ask, { id: `${ask.id}x` })),
  "no-id": (ask) => json(200, without(ask, "id")),
  "no-hosts": (ask) => json(200, without(ask, "hosts")),
  "hosts-is-a-text": (ask) => json(200, task(ask, { hosts: "h1" })),
  "message-is-a-number": (ask) => json(200, task(ask, { message: 7 })),
  "a-list": (ask) => json(200, [task(ask)]),
  "a-page": () => json(200, "<html>ok</html>"),
  "half-an-answer": (ask) => json(200, JSON.stringify(task(ask)).slice(0, -9)),
  "nothing": () => json(200, ""),
  "nested-for-ever": () => json(200, "[".repeat(100_000)),
  "not-found": () => json(404, { message: "what tasks?" }),
  "overloaded": () => json(503, { message: "later" }, { "retry-after": "0" }),
  "redirects": (ask) => json(307, "", { location: `http://127.0.0.1:${port}/obeys/v1.4/tasks/${ask.id}` }),
  "compressed": (ask) => (response) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    response.end(gzipSync(JSON.stringify(task(ask))));
  },
  "silent": () => () => {},
  "hangs-up": () => (response) => response.socket.destroy(),
  "hangs-up-in-between": (ask) => (response) => {
    response.writeHead(200, { "content-length": "1000" });
    response.write(JSON.stringify(task(ask)), () => response.socket.destroy());
  },
  "drips": () => (response) => {
    response.writeHead(200, { "content-length": "1000" });
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(timer));
  },
  "without-end": () => (response) => {
    response.writeHead(200);
    const more = () => !response.destroyed && response.write("x".repeat(65536), more);
    more();
  },
  "not-http": () => (response) => response.socket.end("ok\r\n\r\n"),
  "rejects": (ask) => json(200, task(ask, { status: "rejected", message: "no".repeat(200_000) })),
  "loses-tasks": (ask) => (ask.method === "POST" ? json(200, task(ask, { status: "in-process" })) : json(404, {})),
  "takes-back": (ask) => {
    if (ask.action === "confirm") return json(409, task(ask, { status: "in-process" }));
    return json(200, task(ask, { details: { provisional: true } }));
  },
  "obeys": (ask) => json(200, task(ask)),
};

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", () => {
    const [, manner, , , id, action] = new URL(request.url, "http://cms").pathname.split("/");
    if (manner === "calls") return json(200, calls)(response);
    calls[manner] = (calls[manner] ?? 0) + 1;
    const given = body ? JSON.parse(body) : {};
    const ask = { id: decodeURIComponent(id ?? "") || given.id, hosts: given.hosts ?? tasks.get(id), method: request.method };
    if (given.hosts) tasks.set(given.id, given.hosts);
    manners[manner]({ ...ask, action: action ?? "" })(response);
  });
});
let port = 0;
server.listen(0, "127.0.0.1", () => {
  port = server.address().port;
  console.log(JSON.stringify({ port, manners: Object.keys(manners) }));
});
