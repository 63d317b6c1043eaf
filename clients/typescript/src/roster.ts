// What the messages of successive watches add up to. No I/O; times in milliseconds of any steady clock.
import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConditionStatus, RevisionTarget, type Instance } from "./gen/hqpb/v1/instance_pb.js";
import { EpochTrust, WatchKind, type Source, type WatchEvent, type WatchInstancesResponse } from "./gen/hqpb/v1/service_pb.js";

/** A ready instance: what is shown, and saved. */
export interface ReadyInstance {
  id: string;
  service: string;
  host: string;
  ports: Record<string, number>;
  labels: Record<string, string>;
  revision: string;
  weight?: number; // absent: the usual one, also in files of earlier versions
}

/** Where a list comes from. `kept`: the last good one, while HQ is away or sends a new snapshot. */
export type ListSource = "none" | "saved" | "kept" | "live";

type InstanceList = Map<string, ReadyInstance>;

/** One cluster's part: a single HQ is one, a gateway has several. */
export class Location {
  list: InstanceList = new Map();
  building: InstanceList | undefined = new Map(); // the snapshot that is coming
  isAway = false; // only a gateway says so
  epoch = ""; // the one that is believed
  doubted = ""; // the epoch that is not believed yet
  doubtedSince = 0;
  reason = "";
  unconfirmed = new Set<string>(); // kept, though HQ does not show them
}

export class Roster {
  readonly locations = new Map<string, Location>();
  token = ""; // of the last complete version
  source: ListSource = "none";
  sourceIsStale = false;
  asOf: number | undefined; // the list was complete then
  private pending: WatchEvent[] = [];

  constructor(private readonly believeMs: number) {}

  location(cluster: string): Location {
    let found = this.locations.get(cluster);
    if (!found) this.locations.set(cluster, (found = new Location()));
    return found;
  }

  /** Take a message in. Returns whether the list may have changed. */
  apply(message: WatchInstancesResponse, now: number): boolean {
    switch (message.kind) {
      case WatchKind.SNAPSHOT:
        return this.takeSnapshot(message);
      case WatchKind.SYNCED:
        return this.completeSnapshot(message, now);
      case WatchKind.EVENTS:
        return this.takeEvents(message, now);
      case WatchKind.BOOKMARK:
        for (const source of message.sources) this.location(source.cluster).isAway = isAway(source);
        this.confirm(message, now);
        return this.release(message.sources, now);
      case WatchKind.RESYNC:
        return this.resync(message);
      default:
        return false; // of a newer HQ
    }
  }

  /** Forget the token. Lists serve until their snapshots are complete. */
  startOver(): void {
    this.token = "";
    this.pending = [];
    for (const each of this.locations.values()) each.building = new Map();
    this.loseTouch();
  }

  /** Drop what the stream left incomplete. */
  endStream(): void {
    this.pending = [];
    for (const each of this.locations.values()) if (each.building) each.building = new Map();
    this.loseTouch();
  }

  /** Why endpoints are kept that HQ no longer shows. */
  doubt(): string {
    for (const [name, each] of this.locations) if (each.doubted) return `${name}: ${each.reason}`;
    return "";
  }

  /** The token from which a restart may continue; empty: it needs a snapshot. */
  tokenToSave(): string {
    const isWhole = [...this.locations.values()].every((each) => !each.building && each.unconfirmed.size === 0);
    return isWhole ? this.token : "";
  }

  private takeSnapshot(message: WatchInstancesResponse): boolean {
    const found = this.location(clusterOf(message));
    found.isAway = false;
    if (!found.building) this.startOver(); // a snapshot that nobody announced: it replaces the list, and the token is void
    for (const { change } of message.events) {
      const ready = change.case === "put" ? readyInstance(change.value) : undefined;
      if (ready) found.building?.set(ready.id, ready);
    }
    return false;
  }

  private completeSnapshot(message: WatchInstancesResponse, now: number): boolean {
    let isChanged = false;
    for (const source of message.sources) {
      const found = this.location(source.cluster);
      if (!found.building) continue; // a watch that was resumed
      isChanged = true;
      this.replaceList(found, source, now);
      if (isAway(source)) this.locations.delete(source.cluster); // the gateway knows it no longer
    }
    if (isChanged) this.confirm(message, now);
    else this.moveToken(message);
    return isChanged;
  }

  /** Replace a location's list by its snapshot, but keep instances that a store may have lost. */
  private replaceList(found: Location, source: Source, now: number): void {
    const fresh = found.building ?? new Map();
    const missing = [...found.list.keys()].filter((id) => !fresh.has(id));
    const isDoubted = this.doubts(found, source, fresh.size, now);
    found.unconfirmed = new Set((source.error && !isAway(source)) || isDoubted ? missing : []);
    for (const id of found.unconfirmed) fresh.set(id, found.list.get(id)!);
    found.list = fresh;
    found.building = undefined;
  }

  private takeEvents(message: WatchInstancesResponse, now: number): boolean {
    this.pending.push(...message.events);
    if (!message.resumeToken) return false; // a version is one step
    for (const event of this.pending) this.applyEvent(event);
    this.pending = [];
    this.confirm(message, now);
    this.release(message.sources, now);
    return true;
  }

  private applyEvent({ change }: WatchEvent): void {
    if (change.case === undefined) return;
    const [cluster, id] =
      change.case === "put"
        ? [change.value.meta?.cluster ?? "", change.value.meta?.id ?? ""]
        : [change.value.cluster, change.value.id];
    const found = this.location(cluster);
    const ready = change.case === "put" ? readyInstance(change.value) : undefined;
    found.unconfirmed.delete(id);
    if (ready) found.list.set(id, ready);
    else found.list.delete(id);
  }

  private resync(message: WatchInstancesResponse): boolean {
    const cluster = clusterOf(message);
    if (!cluster) {
      this.startOver();
      return false;
    }
    this.location(cluster).building = new Map();
    this.token = message.resumeToken; // a gateway's is without that location; a single HQ sends none
    this.pending = [];
    this.loseTouch();
    return false;
  }

  private moveToken(message: WatchInstancesResponse): void {
    if (message.resumeToken) this.token = message.resumeToken;
  }

  private confirm(message: WatchInstancesResponse, now: number): void {
    this.moveToken(message);
    let stalenessMs = 0;
    this.sourceIsStale = false;
    for (const source of message.sources) {
      stalenessMs = Math.max(stalenessMs, source.staleness ? durationMs(source.staleness) : 0);
      this.sourceIsStale ||= source.stale || source.error !== "";
      const found = this.locations.get(source.cluster);
      if (found && source.replica) found.isAway = false;
    }
    const all = [...this.locations.values()];
    this.sourceIsStale ||= all.some((each) => each.isAway);
    if (all.length > 0 && all.every((each) => !each.building || each.isAway)) {
      this.source = "live";
      this.asOf = now - stalenessMs;
    }
  }

  /** Drop instances that a location did not confirm, when it is back and complete, or trusted again. */
  private release(sources: Source[], now: number): boolean {
    let isChanged = false;
    for (const source of sources) {
      const found = this.locations.get(source.cluster);
      const isDoubted = source.trust === EpochTrust.DOUBTED;
      if (!found || !this.believes(found, source, now) || (source.error && !isDoubted)) continue;
      for (const id of found.unconfirmed) isChanged = found.list.delete(id) || isChanged;
      found.unconfirmed.clear();
    }
    return isChanged;
  }

  /** A snapshot of another epoch that has far less, or that HQ itself doubts, is not believed yet. */
  private doubts(found: Location, source: Source, count: number, now: number): boolean {
    if (!source.epoch) return false; // a location that cannot be reached
    const isOther = found.epoch !== "" && found.epoch !== source.epoch;
    const isKnown = found.doubted === source.epoch;
    const isOver = isKnown && now - found.doubtedSince >= this.believeMs;
    const isSmall = source.trust === EpochTrust.DOUBTED || count * 2 < found.list.size;
    if (!isOther || isOver || source.trust === EpochTrust.CONFIRMED || !isSmall) {
      believe(found, source);
      return false;
    }
    if (!isKnown) [found.doubted, found.doubtedSince] = [source.epoch, now];
    found.reason = source.error || `its store was replaced and has ${count} instances, previously ${found.list.size}`;
    return true;
  }

  private believes(found: Location, source: Source, now: number): boolean {
    if (!found.doubted) return true;
    const isOver = now - found.doubtedSince >= this.believeMs;
    if (!source.epoch || (source.trust !== EpochTrust.CONFIRMED && !isOver)) return false;
    believe(found, source);
    return true;
  }

  private loseTouch(): void {
    if (this.source === "live") this.source = "kept";
  }
}

function believe(found: Location, source: Source): void {
  found.epoch = source.epoch;
  found.doubted = found.reason = "";
}

function isAway(source: Source): boolean {
  return source.error !== "" && source.replica === "";
}

function clusterOf(message: WatchInstancesResponse): string {
  return message.sources.length === 1 ? message.sources[0]!.cluster : "";
}

function readyInstance(found: Instance): ReadyInstance | undefined {
  const { meta, spec, status } = found;
  if (!meta || !spec || status?.ready?.status !== ConditionStatus.TRUE) return undefined;
  const ready = status.revision.filter((each) => each.ready?.status === ConditionStatus.TRUE).map((each) => each.id).sort();
  const wanted = spec.revision.find((each) => each.target === RevisionTarget.READY && ready.includes(each.id));
  return {
    id: meta.id,
    service: meta.serviceId,
    host: spec.allocation?.host || spec.nodeName,
    ports: Object.fromEntries((spec.allocation?.port ?? []).map((each) => [each.name, each.number])),
    labels: meta.labels,
    revision: wanted?.id ?? ready[0] ?? "",
    weight: spec.weight,
  };
}
