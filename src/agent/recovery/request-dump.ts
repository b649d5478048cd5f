// A request that was refused for good is kept beside the sessions, without its secrets.
import { mkdir } from "node:fs/promises";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import type { RefusedRequest } from "../assembly.ts";

/** Resolves to the file's path. The key is left out, every known secret is masked. */
export async function dumpRequest(home: OpenHome, clock: Clock, refused: RefusedRequest): Promise<string> {
  const { sessionId, request, error } = refused;
  const { target, ...rest } = request;
  const { apiKey: _, headers: __, ...place } = target;
  const at = new Date(clock.now()).toISOString();
  const stamp = at
    .replace(/[-:]/g, "")
    .replace(/\.\d+Z$/, "")
    .replace("T", "_");
  const folder = home.paths.at("sessions");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = home.paths.at(`sessions/request_dump_${sessionId}_${stamp}.json`);
  const text = JSON.stringify({ at, session_id: sessionId, error, target: place, request: rest }, null, 2);
  await writeFileAtomic(path, home.redact(text), { mode: 0o600 });
  return path;
}
