// Where a message goes that has no chat of its own: target strings, home channels, and the directory of chats by name.
import { readFile } from "node:fs/promises";
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import { inProfile } from "../../home/paths.ts";
import type { Clock } from "../../kit/clock.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { parseJson } from "../../kit/json.ts";
import type { ChatSource } from "./chat.ts";
import type { ChatTarget, KnownChat, PlatformEntry } from "./contract.ts";
import type { Routes } from "./routes.ts";
import { asTable, type GatewaySettings } from "./settings.ts";

/** A chat that a target leads to. */
export interface ResolvedTarget {
  readonly entry: PlatformEntry;
  readonly target: ChatTarget;
  readonly name: string;
}

type TargetAnswer =
  | { readonly type: "chats"; readonly chats: readonly ResolvedTarget[] }
  /** Files only. */
  | { readonly type: "local" }
  | {
      readonly type: "problem";
      readonly code: "no_target" | "unknown_platform" | "not_configured";
      readonly error: string;
    };

interface TargetsOptions {
  readonly settings: GatewaySettings;
  readonly entries: readonly PlatformEntry[];
  /** Null where nobody looked yet. */
  directory(): Promise<Directory>;
}

type Directory = Readonly<Record<string, readonly KnownChat[]>>;

/**
 * `origin`, `local`, `all`, a platform (its home channel), `platform:ID[:THREAD]`, `platform:#name`. Ids are read by the platform, so they
 * may contain colons.
 */
export async function resolveTarget(
  text: string,
  { settings, entries, directory }: TargetsOptions,
  origin?: ChatSource,
): Promise<TargetAnswer> {
  const wanted = text.trim();
  if (wanted === "local") return { type: "local" };
  if (wanted === "origin") {
    if (origin) return atOrigin(origin, entries);
    const [first] = homes(settings, entries);
    return first
      ? { type: "chats", chats: [first] }
      : problem("no_target", "there is no chat this came from, and no home channel; set one with /sethome");
  }
  if (wanted === "all") {
    const chats = homes(settings, entries);
    return chats.length > 0
      ? { type: "chats", chats }
      : problem("no_target", "no platform has a home channel; set one with /sethome");
  }
  const colon = wanted.indexOf(":");
  const name = (colon < 0 ? wanted : wanted.slice(0, colon)).toLowerCase();
  const entry = entries.find((one) => one.name === name);
  if (!entry)
    return problem(
      "unknown_platform",
      `no platform is called "${name}"; known: ${entries.map((one) => one.name).join(", ")}`,
    );
  const { on, problem: why } = settings.enabled(entry);
  if (!on)
    return problem(
      "not_configured",
      inProfile(
        settings.home.paths,
        `${entry.label} is not set up${why ? `: ${why}` : ""}. Run: hermes gateway setup ${name}`,
      ),
    );
  if (colon < 0) return atHome(entry, settings, origin);
  const id = wanted.slice(colon + 1).trim();
  const explicit = id.startsWith("#") ? null : entry.parseTarget(id);
  if (explicit) return { type: "chats", chats: [{ entry, target: explicit, name: id }] };
  return byName(entry, id, (await directory())[name] ?? []);
}

function atOrigin(origin: ChatSource, entries: readonly PlatformEntry[]): TargetAnswer {
  const entry = entries.find((one) => one.name === origin.platform);
  const chatId = origin.chat_id ?? origin.user_id;
  if (!entry || !chatId) return problem("no_target", "the chat this came from cannot be written to");
  const target = { chatId, ...(origin.thread_id ? { threadId: origin.thread_id } : {}) };
  return { type: "chats", chats: [{ entry, target, name: origin.chat_name ?? chatId }] };
}

function atHome(entry: PlatformEntry, settings: GatewaySettings, origin?: ChatSource): TargetAnswer {
  if (origin?.platform === entry.name) return atOrigin(origin, [entry]);
  const home = settings.homeChannel(entry);
  if (home) return { type: "chats", chats: [{ entry, target: home.target, name: home.name }] };
  return problem(
    "no_target",
    `${entry.label} has no home channel; send /sethome in the chat you want, or name one: ${entry.name}:CHAT_ID`,
  );
}

function homes(settings: GatewaySettings, entries: readonly PlatformEntry[]): readonly ResolvedTarget[] {
  return entries.flatMap((entry) => {
    const home = settings.enabled(entry).on ? settings.homeChannel(entry) : null;
    return home ? [{ entry, target: home.target, name: home.name }] : [];
  });
}

/** Exact first, then the only one that begins so. A name that two chats have is refused with both. */
function byName(entry: PlatformEntry, typed: string, chats: readonly KnownChat[]): TargetAnswer {
  const wanted = typed.replace(/^#/, "").toLowerCase();
  const namesOf = ({ id, name, type, guild }: KnownChat) => {
    const plain = name.replace(/^#/, "").toLowerCase();
    return [id.toLowerCase(), plain, `${plain} (${type})`, ...(guild ? [`${guild.toLowerCase()}/${plain}`] : [])];
  };
  const exact = chats.filter((chat) => namesOf(chat).includes(wanted));
  const found = exact.length > 0 ? exact : chats.filter((chat) => namesOf(chat)[1]?.startsWith(wanted));
  const [first, ...others] = found;
  if (first && others.length === 0) {
    const target = { chatId: first.id, ...(first.thread_id ? { threadId: first.thread_id } : {}) };
    return { type: "chats", chats: [{ entry, target, name: first.name }] };
  }
  const list = `hermes send --list ${entry.name}`;
  if (!first) return problem("no_target", `${entry.label} knows no chat "${typed}"; ${list} lists them`);
  const candidates = found.map(({ id, name, guild }) => `${guild ? `${guild}/` : ""}${name} (${id})`).join(", ");
  return problem("no_target", `"${typed}" could be ${candidates}; name one by its id`);
}

const problem = (code: Extract<TargetAnswer, { type: "problem" }>["code"], error: string): TargetAnswer => ({
  type: "problem",
  code,
  error,
});

// The directory: what platforms tell of their chats, else the chats that have written.

const FILE = "channel_directory.json";

export async function readDirectory(home: OpenHome): Promise<Directory> {
  const text = await readFile(home.paths.at(FILE), "utf8").catch(() => "{}"); // nobody has looked yet
  const { platforms } = asTable(parseJson(text));
  return Object.fromEntries(
    Object.entries(asTable(platforms)).map(([name, rows]) => [name, Array.isArray(rows) ? rows.filter(isChat) : []]),
  );
}

const isChat = (row: unknown): row is KnownChat => {
  const { id, name, type } = asTable(row);
  return [id, name, type].every((value) => typeof value === "string");
};

interface Source {
  readonly entry: PlatformEntry;
  /** Null: not connected, or it cannot tell. */
  chats(): Promise<readonly KnownChat[]> | null;
}

/** Asks each platform; one that does not answer keeps what was known of it. */
export async function writeDirectory(
  home: OpenHome,
  { sources, routes, clock, log }: { sources: readonly Source[]; routes: Routes; clock: Clock; log: Logger },
): Promise<void> {
  const before = await readDirectory(home);
  const known = await routes.all();
  const rows = await Promise.all(
    sources.map(async ({ entry, chats }) => {
      const written = known.flatMap(({ origin }) => (origin?.platform === entry.name ? [fromSource(origin)] : []));
      try {
        return [entry.name, unique([...((await chats()) ?? []), ...written])] as const;
      } catch (error) {
        log.warn(`${entry.label} did not list its chats`, error);
        return [entry.name, before[entry.name] ?? unique(written)] as const;
      }
    }),
  );
  const directory = { updated_at: new Date(clock.now()).toISOString(), platforms: Object.fromEntries(rows) };
  await writeFileAtomic(home.paths.at(FILE), `${JSON.stringify(directory, null, 2)}\n`, { mode: 0o600 });
}

function fromSource({
  chat_id: id = "",
  chat_name: name,
  chat_type: type,
  user_name: user,
  thread_id: thread,
}: ChatSource): KnownChat {
  return { id, name: name ?? user ?? id, type, ...(thread ? { thread_id: thread } : {}) };
}

function unique(chats: readonly KnownChat[]): readonly KnownChat[] {
  const seen = new Map(chats.filter(({ id }) => id !== "").map((chat) => [`${chat.id}:${chat.thread_id ?? ""}`, chat]));
  return [...seen.values()];
}
