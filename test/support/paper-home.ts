// A home whose chat platform is the example of the guide, installed and enabled as a user would have it.
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type GatewayHomeOptions, gatewayHome, type ModelServer } from "./gateway-rig.ts";
import type { PaperServer } from "./platforms/paper-server.ts";
import { repository } from "./run-hermes.ts";
import type { TempHome } from "./temp-home.ts";

interface PaperOptions extends Partial<GatewayHomeOptions> {
  /** The server knows a message by its key, and the platform says so. */
  readonly repeatIsSafe?: boolean;
  readonly batchSeconds?: number;
}

export async function paperHome(
  model: ModelServer,
  paper: PaperServer,
  { env = {}, config = "", repeatIsSafe = false, batchSeconds = 0, ...more }: PaperOptions = {},
): Promise<TempHome> {
  const entry = `  entries:\n    paper: {repeat_is_safe: ${repeatIsSafe}, batch_seconds: ${batchSeconds}}\n`;
  const plugins = `plugins:\n  enabled: [paper]\n${entry}`;
  const home = await gatewayHome(model, { env: { ...paper.env, ...env }, config: plugins + config, ...more });
  await cp(join(repository, "docs", "example-platform"), home.at("plugins", "paper"), { recursive: true });
  return home;
}

/** Rows of the home's store, looked at from outside. */
export function rowsOf(home: TempHome, sql: string): readonly Readonly<Record<string, unknown>>[] {
  const db = new DatabaseSync(home.at("state.db"), { readOnly: true, timeout: 10_000 });
  try {
    return db.prepare(sql).all() as Readonly<Record<string, unknown>>[]; // rows are objects
  } finally {
    db.close();
  }
}
