// The last good list in a file, with which a restart while HQ is away has addresses.
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { Roster, type ReadyInstance } from "./roster.js";

const FORMAT = 1;

interface SavedState {
  format: number;
  service: string;
  asOf: number | null; // milliseconds since 1970
  token: string;
  locations: Record<string, { epoch: string; list: ReadyInstance[] }>;
}

export function stateFile(directory: string, service: string): string {
  return join(directory, `typescript-${encodeURIComponent(service)}.json`);
}

/** Write atomically: readers see the old file or the new one, complete. `now`: of the roster's clock. */
export function save(path: string, service: string, roster: Roster, now: number): void {
  const state: SavedState = {
    format: FORMAT,
    service,
    asOf: roster.asOf === undefined ? null : Date.now() - (now - roster.asOf),
    token: roster.tokenToSave(),
    locations: Object.fromEntries(
      [...roster.locations].map(([name, each]) => [name, { epoch: each.epoch, list: [...each.list.values()] }]),
    ),
  };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const part = `${path}.${process.pid}.part`;
  const file = openSync(part, "w", 0o600);
  try {
    writeSync(file, JSON.stringify(state));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(part, path);
}

/** Start from an earlier process's list; a file that cannot be read is as if there were none. */
export function restore(path: string, service: string, roster: Roster, now: number): void {
  let state: SavedState;
  try {
    state = JSON.parse(readFileSync(path, "utf8"));
    if (state.format !== FORMAT || state.service !== service) return;
  } catch {
    return;
  }
  for (const [name, { epoch, list }] of Object.entries(state.locations)) {
    const found = roster.location(name);
    found.epoch = epoch;
    found.list = new Map(list.map((each) => [each.id, each]));
    if (state.token) found.building = undefined;
  }
  roster.token = state.token;
  roster.source = "saved";
  const ageMs = state.asOf === null ? -1 : Date.now() - state.asOf;
  if (ageMs >= 0) roster.asOf = now - ageMs; // a date in the future says nothing
}
