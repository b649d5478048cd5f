// Who may talk to the agent, and which commands they may run. Everything here is decided before a stranger leaves a trace.
import { type ChatSource, canonicalId } from "./chat.ts";

/** What is written down about access to one platform. */
interface AccessRules {
  /** Its own transport says who it is: signatures, keys. */
  readonly trustsTransport: boolean;
  readonly allowedChats: ReadonlySet<string>;
  readonly allowAll: boolean;
  readonly allowBots: "none" | "mentions" | "all";
  readonly allowedUsers: ReadonlySet<string>;
  readonly allowedInGroups: ReadonlySet<string>;
  /** For all platforms. */
  readonly allowedEverywhere: ReadonlySet<string>;
  readonly allowAllEverywhere: boolean;
  readonly strangersInDms: "pair" | "ignore";
}

interface RuleSources {
  env(name: string): string | undefined;
  /** What the settings say about strangers on every platform; empty: nothing. */
  readonly forStrangers: string;
  /** `platforms.<name>.extra` */
  readonly extra: Readonly<Record<string, unknown>>;
  readonly trustsTransport?: boolean;
}

/** The rules as the environment and the settings have them now. */
export function accessRules(
  platform: string,
  { env, forStrangers, extra, trustsTransport = false }: RuleSources,
): AccessRules {
  const own = (name: string) => env(`${platform.toUpperCase()}_${name}`);
  const allowedChats = idsIn(own("GROUP_ALLOWED_CHATS"));
  const allowedUsers = idsIn(own("ALLOWED_USERS"));
  const allowedInGroups = idsIn(own("GROUP_ALLOWED_USERS"));
  const allowedEverywhere = idsIn(env("GATEWAY_ALLOWED_USERS"));
  const hasList = [allowedChats, allowedUsers, allowedInGroups, allowedEverywhere].some(({ size }) => size > 0);
  const said = [own("UNAUTHORIZED_DM_BEHAVIOR"), extra.unauthorized_dm_behavior].find(isBehaviour);
  return {
    ...{ trustsTransport, allowedChats, allowedUsers, allowedInGroups, allowedEverywhere },
    allowAll: isOn(own("ALLOW_ALL_USERS")),
    allowAllEverywhere: isOn(env("GATEWAY_ALLOW_ALL_USERS")),
    allowBots: botRule(own("ALLOW_BOTS")),
    strangersInDms: said ?? (isBehaviour(forStrangers) ? forStrangers : hasList ? "ignore" : "pair"),
  };
}

const isBehaviour = (value: unknown): value is "pair" | "ignore" => value === "pair" || value === "ignore";
const isOn = (value: string | undefined) => /^(?:1|true|yes|on)$/i.test(value?.trim() ?? "");

/** A comma list; blanks around a name are none of it. */
function idsIn(list: string | undefined): ReadonlySet<string> {
  return new Set(
    (list ?? "")
      .split(",")
      .map((id) => id.trim())
      .filter((id) => id !== ""),
  );
}

function botRule(value: string | undefined): AccessRules["allowBots"] {
  const rule = value?.trim().toLowerCase();
  return rule === "mentions" || rule === "all" ? rule : "none";
}

export interface Sender {
  readonly source: ChatSource;
  readonly isBot?: boolean;
  /** It names us, or answers one of our messages. */
  readonly mentionsUs?: boolean;
  readonly isPaired: boolean;
  /** A role on the platform is on a list; false: there is a list, and none is. */
  readonly allowedByRole?: boolean;
}

/** The order of the steps is part of the contract: what comes first wins. */
export function isAuthorised(
  { source, isBot = false, mentionsUs = false, isPaired, allowedByRole }: Sender,
  rules: AccessRules,
): boolean {
  if (rules.trustsTransport) return true;
  const isDm = source.chat_type === "dm";
  if (!isDm && matches(rules.allowedChats, source.platform, [source.chat_id, source.chat_id_alt])) return true;
  const ids = [source.user_id, source.user_id_alt].filter((id) => id !== undefined && id !== "");
  if (ids.length === 0) return false;
  if (rules.allowAll) return true;
  if (isBot && !(rules.allowBots === "all" || (rules.allowBots === "mentions" && mentionsUs))) return false;
  if (isPaired || allowedByRole) return true;
  const lists = [rules.allowedUsers, rules.allowedEverywhere, ...(isDm ? [] : [rules.allowedInGroups])];
  const anyList =
    allowedByRole === false || [...lists, rules.allowedInGroups, rules.allowedChats].some(({ size }) => size > 0);
  if (!anyList) return rules.allowAllEverywhere;
  return lists.some((list) => matches(list, source.platform, ids));
}

/** Ids are compared whole; WhatsApp's in the one form they all have. */
function matches(list: ReadonlySet<string>, platform: string, ids: readonly (string | undefined)[]): boolean {
  if (list.has("*")) return true;
  const known = new Set([...list].map((id) => canonicalId(platform, id)));
  return ids.some((id) => id !== undefined && known.has(canonicalId(platform, id)));
}

/** What a stranger hears. In groups nothing: whoever is there did not write to us. */
export function forStranger(source: ChatSource, rules: AccessRules): "pair" | "silence" {
  return source.chat_type === "dm" && rules.strangersInDms === "pair" ? "pair" : "silence";
}

// Commands.

interface CommandRights {
  readonly admins: ReadonlySet<string>;
  readonly commands: ReadonlySet<string>;
}

const ALWAYS = new Set(["help", "whoami"]);

/** Who may run what in this kind of chat; null when nobody said, and everybody may everything. */
export function commandRights(
  { chat_type: type }: ChatSource,
  extra: Readonly<Record<string, unknown>>,
): CommandRights | null {
  const group = rightsFrom(extra.group_allow_admin_from, extra.group_user_allowed_commands);
  if (type !== "dm") return group;
  return rightsFrom(extra.allow_admin_from, extra.user_allowed_commands) ?? group;
}

function rightsFrom(admins: unknown, commands: unknown): CommandRights | null {
  const list = namesIn(admins);
  if (list.length === 0) return null;
  const named = namesIn(commands).map((name) => name.replace(/^\//, "").toLowerCase());
  return { admins: new Set(list), commands: new Set(named) };
}

function namesIn(value: unknown): readonly string[] {
  // A single id reads as a number in YAML; ignoring it would make everybody an admin.
  if (typeof value === "string" || typeof value === "number") return [...idsIn(String(value))];
  return Array.isArray(value) ? value.map((name) => String(name).trim()).filter((name) => name !== "") : [];
}

export function isAdmin(userId: string | undefined, rights: CommandRights | null): boolean {
  if (rights === null) return true;
  return userId !== undefined && (rights.admins.has(userId) || rights.admins.has("*"));
}

export function mayRun(
  command: { readonly name: string; readonly permission: "user" | "admin" },
  userId: string | undefined,
  rights: CommandRights | null,
): boolean {
  if (rights === null || isAdmin(userId, rights)) return true;
  if (ALWAYS.has(command.name) || rights.commands.has(command.name)) return true;
  return rights.commands.has("*") && command.permission === "user";
}

/**
 * Who answers a question of a turn: whoever asked for the work, or somebody who is named as an admin. Where the platform names nobody who
 * asked, anybody who may write.
 */
export function mayAnswer(who: ChatSource, asker: ChatSource, rights: CommandRights | null): boolean {
  if (who.platform !== asker.platform) return false;
  const idsOf = ({ platform, user_id, user_id_alt }: ChatSource) =>
    [user_id, user_id_alt].flatMap((id) => canonicalId(platform, id) ?? []);
  const askers = idsOf(asker);
  if (askers.length === 0 || idsOf(who).some((id) => askers.includes(id))) return true;
  return rights !== null && isAdmin(who.user_id, rights);
}
