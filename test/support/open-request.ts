// A home, its store, and a request to talk in it, as a door would say it.
import type { OpenRequest } from "../../src/agent/open-request.ts";
import { type OpenHome, openHome } from "../../src/home/open.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { createRedactor } from "../../src/safety/redact.ts";
import { openSessionStore } from "../../src/sessions/open.ts";
import type { SessionStore } from "../../src/sessions/store.ts";
import { seedProbe, type TempHome } from "./temp-home.ts";

export async function openRequest(
  temp: TempHome,
  /** Secrets are masked, as in the program. */
  { masked = false } = {},
): Promise<{ home: OpenHome; store: SessionStore; request: OpenRequest }> {
  await seedProbe(temp.dir);
  const home = await openHome({
    argv: [],
    env: { HERMES_HOME: temp.dir, HOME: temp.osHome, PATH: process.env.PATH ?? "" },
    osHome: temp.osHome,
    cwd: temp.project,
    ...(masked && { redactorFor: createRedactor }),
  });
  const store = await openSessionStore({
    path: home.paths.stateDb,
    journalMode: "auto",
    log: home.log,
    clock: systemClock,
  });
  const request: OpenRequest = {
    home,
    clock: systemClock,
    store: async () => store,
    cwd: temp.project,
    platform: "cli",
    source: "cli",
    interactive: false,
  };
  return { home, store, request };
}
