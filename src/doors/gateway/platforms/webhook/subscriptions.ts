// The file of subscribed routes: read by the listener when it has changed, written by the command line. Its form is the original's:
// name -> route.
import { randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { withLock } from "../../../../home/lock.ts";
import type { Logger } from "../../../../home/log.ts";
import { isMissing, messageOf, UserError } from "../../../../kit/errors.ts";
import { writeFileAtomic } from "../../../../kit/files.ts";
import { asRecord, isRecord, type Json, parseJson } from "../../../../kit/json.ts";
import type { AdapterHost } from "../../contract.ts";
import { commonSecret, configuredRoutes, type Route, readRoute } from "./routes.ts";

export const SUBSCRIPTIONS = "webhook_subscriptions.json";

/** Both kinds; the file is read again when it has changed. One that cannot be read leaves what was known before. */
export class Routes {
  readonly #option: AdapterHost["option"];
  readonly #path: string | null;
  readonly #log: Logger;
  #stamp = "";
  #subscribed: Json = {};

  constructor(option: AdapterHost["option"], path: string | null, log: Logger) {
    this.#option = option;
    this.#path = path;
    this.#log = log;
  }

  async find(name: string): Promise<Route | null> {
    const secret = commonSecret(this.#option);
    const configured = asRecord(this.#option("routes"));
    if (Object.hasOwn(configured, name)) return readRoute(name, configured[name], "config", secret);
    await this.#refresh();
    if (!Object.hasOwn(this.#subscribed, name)) return null;
    return readRoute(name, this.#subscribed[name], "subscribed", secret);
  }

  /** The settings win over the file. */
  async all(): Promise<readonly Route[]> {
    await this.#refresh();
    const configured = configuredRoutes(this.#option);
    const names = new Set(configured.map(({ name }) => name));
    const secret = commonSecret(this.#option);
    const subscribed = Object.entries(this.#subscribed).filter(([name]) => !names.has(name));
    return [...configured, ...subscribed.map(([name, row]) => readRoute(name, row, "subscribed", secret))];
  }

  async #refresh(): Promise<void> {
    if (this.#path === null) return;
    const stamp = await stampOf(this.#path);
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    try {
      this.#subscribed = await readSubscriptions(this.#path);
    } catch (error) {
      this.#log.warn(`${messageOf(error)} The routes that were known before stay.`);
    }
  }
}

async function stampOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found ? `${found.mtimeNs}:${found.size}:${found.ino}` : "none";
}

/** An empty table when there is no file; rejects with a `UserError` when it is not one of ours. */
async function readSubscriptions(path: string): Promise<Json> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return {};
    throw error;
  }
  const value = parseJson(text);
  if (isRecord(value)) return value;
  throw new UserError(`${path} is not a table of webhook routes in JSON; fix it or delete it.`);
}

/** What a person says about a new route. */
interface Subscription {
  readonly name: string;
  readonly description?: string;
  readonly events?: readonly string[];
  readonly prompt?: string;
  readonly skills?: readonly string[];
  readonly deliver?: string;
  readonly deliver_extra?: Readonly<Record<string, string>>;
  readonly deliver_only?: boolean;
  readonly secret?: string;
}

/** Writes a route, over an older one of that name. Resolves to it; its secret is shown this once. */
export async function subscribe(
  path: string,
  { name, ...asked }: Subscription,
  at: { readonly now: number; readonly taken: readonly string[] },
): Promise<Route> {
  const secret = asked.secret?.trim() || randomBytes(24).toString("base64url");
  const row = { ...asked, secret, created_at: new Date(at.now).toISOString() };
  const route = readRoute(name, row, "subscribed", "");
  if (route.problem !== null) throw new UserError(`The route ${JSON.stringify(name)} was not added: ${route.problem}.`);
  if (at.taken.includes(name))
    throw new UserError(`The route ${name} is in the settings (platforms.webhook.extra.routes); choose another name.`);
  await change(path, (rows) => ({ ...rows, [name]: row }));
  return route;
}

/** False when there is none of that name. */
export async function unsubscribe(path: string, name: string): Promise<boolean> {
  let existed = false;
  await change(path, ({ [name]: gone, ...rows }) => {
    existed = gone !== undefined;
    return rows;
  });
  return existed;
}

async function change(path: string, edit: (rows: Json) => Json): Promise<void> {
  await withLock(`${path}.lock`, async () => {
    const rows = edit(await readSubscriptions(path));
    await writeFileAtomic(path, `${JSON.stringify(rows, null, 2)}\n`, { mode: 0o600 });
  });
}

/** A route as `webhook list --json` shows it: without its secret. */
export const routeRow = ({ name, events, deliver, enabled, source }: Route, url: string) => ({
  name,
  url: `${url}/webhooks/${name}`,
  events,
  deliver: deliver || "log",
  enabled,
  source,
});
