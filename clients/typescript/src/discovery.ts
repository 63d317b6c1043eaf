// Follow the ready instances of a service in HQ, over one watch at one replica at a time, whatever happens to it.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient, type Client } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { create, fromBinary } from "@bufbuild/protobuf";
import { durationMs, DurationSchema, type Duration } from "@bufbuild/protobuf/wkt";
import { InstanceService, ReadinessFilter, WatchInstancesRequestSchema } from "./gen/hqpb/v1/service_pb.js";
import { Roster, type ListSource, type ReadyInstance } from "./roster.js";
import { restore, save, stateFile } from "./saved.js";

const FIRST_BACKOFF_MS = 10;
const USUAL_WEIGHT = 100;
const STABLE_MS = 5_000;
const LARGEST_BYTES = 64 << 20;
const REFUSALS = new Set([Code.PermissionDenied, Code.Unauthenticated, Code.NotFound, Code.Unimplemented]);
const VOID_TOKEN = new Set([Code.FailedPrecondition, Code.OutOfRange, Code.InvalidArgument]);

export interface DiscoveryOptions {
  servers: string[]; // host:port of each replica
  stateDir?: string; // for the last good list
  tokenFile?: string; // files are read again for each stream
  ca?: string;
  cert?: string;
  key?: string;
  silenceMs?: number; // a stream without a message for so long is left for another replica
  staleMs?: number; // after so long without a message the list is called stale
  connectMs?: number; // a replica must accept a connection within this
  maxBackoffMs?: number;
  refusedMs?: number; // about how long to wait after a refusal
  saveMs?: number; // a change is in the file after so long
  believeMs?: number; // what a replaced store lacks is kept for so long at most
  renewMs?: number; // about how often to start over, so that changes that no stream reported are found
}

const DEFAULTS = {
  silenceMs: 12_000,
  staleMs: 6_000,
  connectMs: 2_000,
  maxBackoffMs: 10_000,
  refusedMs: 5_000,
  saveMs: 1_000,
  believeMs: 3_600_000,
  renewMs: 1_800_000,
};

export interface Endpoint {
  id: string;
  cluster: string;
  address: string; // host:port
  revision: string;
  labels: Record<string, string>;
  weight: number; // its share of new traffic, in proportion to the others'; 0: none, unless all have it
}

export interface DiscoveryStatus {
  known: boolean; // there is a list, maybe an empty one
  source: ListSource;
  stale: boolean;
  ageMs: number | undefined; // undefined: unknown
  error: string; // why HQ cannot be followed at the moment
  doubt: string; // why endpoints are kept that HQ no longer shows
}

/** A replica, and the connection to it. */
interface Connection {
  client: Client<typeof InstanceService>;
  session: Http2SessionManager;
}

/** Follows one service at a named port until it is closed. It needs no awaiting: lists come to `onChange`. */
export class Discovery {
  endpoints: Endpoint[] = [];
  onChange: (endpoints: Endpoint[]) => void = () => {};
  private readonly options: DiscoveryOptions & typeof DEFAULTS;
  private readonly roster: Roster;
  private readonly end = new AbortController();
  private readonly path: string;
  private readonly saving: NodeJS.Timeout;
  private readonly following: Promise<void>;
  private error = "";
  private heardAt = performance.now();
  private isDirty = false;
  private shown = ""; // what onChange was called with

  constructor(
    readonly service: string,
    readonly port: string,
    options: DiscoveryOptions,
  ) {
    this.options = { ...DEFAULTS, ...options };
    this.roster = new Roster(this.options.believeMs);
    this.path = options.stateDir ? stateFile(options.stateDir, service) : "";
    if (this.path) restore(this.path, service, this.roster, performance.now());
    this.endpoints = this.buildEndpoints();
    this.saving = setInterval(() => this.isDirty && this.save(), this.options.saveMs);
    this.following = this.follow();
  }

  status(): DiscoveryStatus {
    const { source, sourceIsStale, asOf } = this.roster;
    const now = performance.now();
    const doubt = this.roster.doubt();
    return {
      known: source !== "none",
      source,
      stale: source !== "live" || sourceIsStale || doubt !== "" || now - this.heardAt > this.options.staleMs,
      ageMs: asOf === undefined ? undefined : Math.max(0, now - asOf),
      error: this.error,
      doubt,
    };
  }

  /** End the watch; the file has the list as it was last. */
  async close(): Promise<void> {
    this.end.abort();
    clearInterval(this.saving);
    const isDue = this.isDirty || this.roster.source === "live";
    await this.following;
    if (isDue) this.save();
  }

  /** One watch after the other. No error ends it. */
  private async follow(): Promise<void> {
    const servers = shuffle(this.options.servers);
    let failures = 0;
    let at = 0;
    while (!this.end.signal.aborted) {
      const began = performance.now();
      try {
        await this.watch(servers[at]!);
        this.roster.startOver(); // due: the replica is as good as any
      } catch (caught) {
        const error = ConnectError.from(caught);
        this.note(error);
        failures = performance.now() - began >= STABLE_MS ? 1 : failures + 1;
        at = (at + 1) % servers.length;
        await sleep(this.waitMs(error, failures, servers.length), undefined, { signal: this.end.signal }).catch(() => {});
      }
    }
  }

  private note(error: ConnectError): void {
    if (this.end.signal.aborted) return;
    this.error = error.message;
    this.roster.endStream();
    if (VOID_TOKEN.has(error.code) && this.roster.token) this.roster.startOver();
  }

  /** How long to wait: 0 while a replica has not been asked, else with jitter; never less than HQ asks for. */
  private waitMs(error: ConnectError, failures: number, replicas: number): number {
    const { maxBackoffMs, refusedMs } = this.options;
    const round = Math.min(20, Math.floor((failures - 1) / replicas));
    let wait = failures % replicas ? 0 : Math.random() * Math.min(maxBackoffMs, FIRST_BACKOFF_MS * 2 ** round);
    if (REFUSALS.has(error.code)) wait = refusedMs * (0.5 + Math.random());
    const asked = retryDelayMs(error);
    return Math.max(wait, asked && asked * (1 + Math.random() / 5));
  }

  /** Follow one stream until it is due to start over. Throws whatever ends it earlier. */
  private async watch(server: string): Promise<void> {
    const { silenceMs, connectMs, renewMs } = this.options;
    const stream = new AbortController();
    const onEnd = () => stream.abort();
    this.end.signal.addEventListener("abort", onEnd);
    let timer = setTimeout(() => stream.abort(), connectMs);
    const restart = () => {
      clearTimeout(timer);
      timer = setTimeout(() => stream.abort(new Error(`${server} sent nothing for ${silenceMs} ms`)), silenceMs);
    };
    const connection = this.connect(server);
    const renewAt = performance.now() + renewMs * (0.8 + 0.4 * Math.random());
    try {
      await Promise.race([connection.session.connect(), rejectOn(stream.signal, `${server} did not accept in time`)]);
      restart();
      const token = this.options.tokenFile ? readFileSync(this.options.tokenFile, "utf8").trim() : "";
      const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
      const filter = { serviceId: [this.service], readiness: ReadinessFilter.READY };
      const request = create(WatchInstancesRequestSchema, { filter, resumeToken: this.roster.token });
      for await (const message of connection.client.watchInstances(request, { signal: stream.signal, headers })) {
        restart();
        this.error = "";
        this.heardAt = performance.now();
        if (this.roster.apply(message, this.heardAt)) this.show();
        if (this.heardAt >= renewAt && this.roster.token) return;
      }
      throw new ConnectError(`${server} ended the watch`, Code.Unavailable);
    } finally {
      clearTimeout(timer);
      this.end.signal.removeEventListener("abort", onEnd);
      connection.session.abort(); // the next stream may need other certificates, or the replica is frozen
    }
  }

  /** A connection with the certificates of now. When to try again is decided here, not by the transport. */
  private connect(server: string): Connection {
    const { ca, cert, key } = this.options;
    const read = (file: string | undefined) => (file ? readFileSync(file) : undefined);
    const nodeOptions = { ca: read(ca), cert: read(cert), key: read(key) };
    const baseUrl = `${ca ? "https" : "http"}://${server}`;
    const session = new Http2SessionManager(baseUrl, {}, nodeOptions);
    const transport = createGrpcTransport({ baseUrl, sessionManager: session, readMaxBytes: LARGEST_BYTES });
    return { client: createClient(InstanceService, transport), session };
  }

  private show(): void {
    const before = this.shown;
    this.endpoints = this.buildEndpoints();
    this.shown = JSON.stringify(this.endpoints);
    this.isDirty = true;
    if (this.shown !== before) this.onChange(this.endpoints);
  }

  private buildEndpoints(): Endpoint[] {
    const all = [...this.roster.locations].flatMap(([cluster, each]) =>
      [...each.list.values()].map((ready) => this.endpoint(cluster, ready)).filter((made) => made !== undefined),
    );
    return all.sort((a, b) => (a.cluster === b.cluster ? compare(a.id, b.id) : compare(a.cluster, b.cluster)));
  }

  private endpoint(cluster: string, ready: ReadyInstance): Endpoint | undefined {
    const port = ready.ports[this.port];
    if (port === undefined || !ready.host || ready.service !== this.service) return undefined;
    const host = ready.host.includes(":") ? `[${ready.host}]` : ready.host;
    const { id, revision, labels, weight = USUAL_WEIGHT } = ready;
    return { id, cluster, address: `${host}:${port}`, revision, labels, weight };
  }

  private save(): void {
    if (!this.path || this.roster.source === "none") return;
    try {
      save(this.path, this.service, this.roster, performance.now());
      this.isDirty = false;
    } catch (error) {
      console.warn(`the list of ${this.service} cannot be saved, trying again: ${error}`);
    }
  }
}

function rejectOn(signal: AbortSignal, message: string): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(new ConnectError(message, Code.Unavailable)), { once: true }),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}

function shuffle<T>(all: T[]): T[] {
  return all.map((each) => [Math.random(), each] as const).sort((a, b) => a[0] - b[0]).map(([, each]) => each);
}

/** HQ's RetryInfo, by hand: its only field, number 1, is a Duration. 0: there is none. */
function retryDelayMs(error: ConnectError): number {
  for (const detail of error.details) {
    if (!("type" in detail) || detail.type !== "google.rpc.RetryInfo" || detail.value[0] !== 0x0a) continue;
    const delay: Duration = fromBinary(DurationSchema, detail.value.subarray(2));
    return durationMs(delay);
  }
  return 0;
}
