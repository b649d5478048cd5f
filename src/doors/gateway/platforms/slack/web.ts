// The Web API: one client for each workspace, what its answers mean, and the names it knows.
import { openAsBlob } from "node:fs";
import { readFile as readText } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { codeOf, isMissing, messageOf } from "../../../../kit/errors.ts";
import { failureCode } from "../../../../kit/http.ts";
import { asList, asRecord, asText, parseJson } from "../../../../kit/json.ts";
import { type AdapterHost, type OutgoingFile, PlatformError, type SendResult } from "../../contract.ts";
import { CallFailedError, callWeb } from "../../web-calls.ts";
import { apiUrl, SlackClient, SlackError } from "./client.ts";

/** The app in one workspace. */
export interface Workspace {
  readonly client: SlackClient;
  readonly token: string;
  /** Known when it has signed in. */
  team?: string;
  teamName?: string;
  user?: string;
  userName?: string;
  botId?: string;
}

interface Named {
  readonly name: string;
  readonly topic?: string;
}

const UPLOAD_SECONDS = 300;
const NAME_MS = 3600_000;
const MAX_NAMES = 5000;

export class SlackWeb {
  readonly workspaces: readonly Workspace[];
  /** As in a URL: files come from there too. */
  readonly ownHost: string;
  readonly #host: AdapterHost;
  /** By channel or person; what came in says it, else it is looked for. */
  readonly #places = new Map<string, Workspace>();
  readonly #names = new Map<string, Named & { readonly until: number }>();
  readonly #directChats = new Map<string, string>();

  private constructor(host: AdapterHost, workspaces: readonly Workspace[]) {
    this.#host = host;
    this.workspaces = workspaces;
    this.ownHost = new URL(apiUrl(host)).host;
  }

  static async open(host: AdapterHost): Promise<SlackWeb> {
    const tokens = await tokensOf(host);
    return new SlackWeb(
      host,
      tokens.map((token) => ({ token, client: new SlackClient(host, token) })),
    );
  }

  get main(): Workspace {
    const [first] = this.workspaces;
    if (first === undefined)
      throw new PlatformError("not_set_up", "Slack has no bot token; set SLACK_BOT_TOKEN", { retryable: false });
    return first;
  }

  /** Asks Slack who we are. A workspace that has thrown us out does not keep the others from working. */
  async signIn(): Promise<void> {
    const failures: unknown[] = [];
    for (const workspace of this.workspaces)
      try {
        const who = await workspace.client.call("auth.test");
        const known = (key: string) => asText(who[key]) || undefined;
        Object.assign(workspace, { team: known("team_id"), teamName: known("team"), botId: known("bot_id") });
        Object.assign(workspace, { user: known("user_id"), userName: known("user") });
      } catch (error) {
        failures.push(error);
        this.#host.log.warn("a workspace of Slack refused the bot token", error);
      }
    const [failure] = failures;
    if (failures.length === this.workspaces.length) throw connectFailure(failure, "SLACK_BOT_TOKEN");
  }

  ofTeam(team: string | undefined): Workspace {
    return this.workspaces.find((one) => one.team !== undefined && one.team === team) ?? this.main;
  }

  /** A chat was seen in a workspace. */
  place(id: string, workspace: Workspace): void {
    if (this.workspaces.length > 1) this.#places.set(id, workspace);
  }

  /** The workspace of a chat and the id to write to; a person is written to in their direct chat. */
  async locate(id: string): Promise<{ readonly workspace: Workspace; readonly channel: string }> {
    const workspace = await this.#workspaceOf(id);
    if (!/^[UW]/.test(id)) return { workspace, channel: id };
    const known = this.#directChats.get(id);
    if (known !== undefined) return { workspace, channel: known };
    const opened = await workspace.client.call("conversations.open", { users: id });
    const channel = asText(asRecord(opened.channel).id) || id;
    this.#directChats.set(id, channel);
    this.place(channel, workspace);
    return { workspace, channel };
  }

  async #workspaceOf(id: string): Promise<Workspace> {
    const known = this.workspaces.length > 1 ? this.#places.get(id) : this.main;
    if (known) return known;
    for (const workspace of this.workspaces)
      try {
        if (/^[UW]/.test(id)) await workspace.client.call("users.info", { user: id });
        else await workspace.client.call("conversations.info", { channel: id });
        this.place(id, workspace);
        return workspace;
      } catch (error) {
        if (errorCode(error) === null) throw error;
      }
    return this.main;
  }

  async userName(workspace: Workspace, id: string): Promise<string | undefined> {
    const known = await this.#named(id, async () => {
      const user = asRecord((await workspace.client.call("users.info", { user: id })).user);
      const shown = asText(asRecord(user.profile).display_name);
      return { name: shown || asText(user.real_name) || asText(user.name) };
    });
    return known.name || undefined;
  }

  async channel(workspace: Workspace, id: string): Promise<{ readonly name?: string; readonly topic?: string }> {
    const known = await this.#named(id, async () => {
      const channel = asRecord((await workspace.client.call("conversations.info", { channel: id })).channel);
      return { name: asText(channel.name), topic: asText(asRecord(channel.topic).value) };
    });
    return { ...(known.name ? { name: known.name } : {}), ...(known.topic ? { topic: known.topic } : {}) };
  }

  async #named(id: string, ask: () => Promise<Named>): Promise<Named> {
    const now = this.#host.clock.now();
    const known = this.#names.get(id);
    if (known && known.until > now) return known;
    // A missing scope or an unknown id stays missing; the id itself will do meanwhile.
    const found: Named = await ask().catch(() => ({ name: known?.name ?? "" }));
    if (this.#names.size >= MAX_NAMES) this.#names.clear();
    const entry = { ...found, until: now + (found.name === "" ? NAME_MS / 6 : NAME_MS) };
    this.#names.set(id, entry);
    return entry;
  }

  /** The token goes to Slack and to the server that was configured, and nowhere else. */
  isOwnUrl(url: string): boolean {
    if (!URL.canParse(url)) return false;
    const { host, hostname, protocol } = new URL(url);
    return host === this.ownHost || (protocol === "https:" && /(?:^|\.)slack(?:-edge)?\.com$/.test(hostname));
  }

  /** Room for a file, its bytes, and last the message with it: only then anybody sees something. */
  async upload(
    { workspace, channel, threadTs }: { workspace: Workspace; channel: string; threadTs?: string | undefined },
    file: OutgoingFile,
    { comment, began }: { comment?: string | undefined; began(fileId: string): void },
  ): Promise<string | null> {
    const { client } = workspace;
    const blob = await openAsBlob(file.path);
    const room = await client.call("files.getUploadURLExternal", { filename: file.name, length: blob.size });
    const [url, id] = [asText(room.upload_url), asText(room.file_id)];
    if (url === "" || id === "") throw new Error("Slack gave no place to upload the file to");
    const put = await callWeb(url, { method: "POST", body: blob, seconds: UPLOAD_SECONDS }).catch((error: unknown) => {
      throw new NothingSent(`the file could not be uploaded: ${messageOf(error)}`);
    });
    if (put.status !== 200) throw new NothingSent(`the file could not be uploaded: Slack answered ${put.status}`);
    began(id);
    const where = threadTs === undefined ? { channel_id: channel } : { channel_id: channel, thread_ts: threadTs };
    const done = await client.call("files.completeUploadExternal", {
      files: [{ id, title: file.name }],
      ...where,
      ...(comment ? { initial_comment: comment } : {}),
    });
    return sharedTs(asList(done.files)[0], channel);
  }
}

/** It failed before anybody could see anything. */
class NothingSent extends Error {
  override name = "NothingSent";
}

/** The message with a file; Slack often knows it only a moment later. */
function sharedTs(file: unknown, channel: string): string | null {
  const { public: open, private: closed } = asRecord(asRecord(file).shares);
  for (const shares of [open, closed]) {
    const [first] = (asRecord(shares)[channel] as readonly unknown[] | undefined) ?? []; // a list, where it is there
    const ts = asText(asRecord(first).ts);
    if (ts !== "") return ts;
  }
  return null;
}

/** A file of the home, for several workspaces. */
const TOKENS_FILE = "slack_tokens.json";

/** From the variable, a list between commas, and from a file: `{"T1": "xoxb-..."}`, `{"T1": {"token": ...}}` or a list. */
async function tokensOf(host: AdapterHost): Promise<string[]> {
  const own = asText(host.option("token", "SLACK_BOT_TOKEN")).split(",");
  const named = asText(host.option("tokens_file", "SLACK_TOKENS_FILE"));
  const path = isAbsolute(named) ? named : (host.homePath?.(named || TOKENS_FILE) ?? named);
  const listed = path === "" ? [] : await tokensIn(path, { isNamed: named !== "" });
  return [...new Set([...own, ...listed].map((token) => token.trim()))].filter((token) => token !== "");
}

async function tokensIn(path: string, { isNamed }: { readonly isNamed: boolean }): Promise<string[]> {
  const refuse = (why: string) =>
    new PlatformError("tokens_file", `the file of Slack tokens ${path} ${why}; correct or remove it`, {
      retryable: false,
    });
  const text = await readText(path, "utf8").catch((error: unknown) => {
    if (!isNamed && isMissing(error)) return "{}";
    throw refuse(`cannot be read: ${messageOf(error)}`);
  });
  const parsed = parseJson(text);
  if (typeof parsed !== "object" || parsed === null) throw refuse("is not JSON");
  return Object.values(parsed).map((one: unknown) => (typeof one === "string" ? one : asText(asRecord(one).token)));
}

/** Slack's own name of a failure; null when it did not answer. */
export const errorCode = (error: unknown): string | null => (error instanceof SlackError ? error.code : null);

const OUTCOMES: Readonly<Record<string, Exclude<SendResult, { messageId: string | null }>["failed"]>> = {
  ...{ ratelimited: "rate_limited", rate_limited: "rate_limited", message_limit_exceeded: "rate_limited" },
  ...{ invalid_blocks: "format", invalid_blocks_format: "format", msg_blocks_too_long: "format" },
  ...{ msg_too_long: "format", markdown_text_conflict: "format" },
  ...{ thread_not_found: "thread_gone", cannot_reply_to_message: "thread_gone", invalid_thread_ts: "thread_gone" },
  ...{ restricted_action_thread_locked: "thread_gone", restricted_action_non_threadable_channel: "thread_gone" },
  ...{ not_authed: "unreachable", invalid_auth: "unreachable", account_inactive: "unreachable" },
  ...{ token_revoked: "unreachable", token_expired: "unreachable", team_added_to_org: "unreachable" },
  ...{ service_unavailable: "unreachable", request_timeout: "unreachable" },
  // Slack: "some aspect of the operation" may have succeeded.
  ...{ internal_error: "unknown", fatal_error: "unknown" },
};

export function sendFailure(error: unknown): SendResult {
  if (error instanceof NothingSent) return { failed: "unreachable", error: error.message };
  if (error instanceof SlackError) {
    const { code, status, retryAfter } = error;
    if (code !== null) return { failed: OUTCOMES[code] ?? "refused", error: `Slack: ${code}` };
    if (status === 429) return { failed: "rate_limited", error: "Slack: rate limit", retryAfter };
    const sentence = `Slack answered ${status}`;
    // A front that reached nobody; behind any other 5xx somebody may have worked on it, and behind a page that is no answer too.
    if (status === 502 || status === 503) return { failed: "unreachable", error: sentence };
    return { failed: status >= 500 || status < 300 ? "unknown" : "refused", error: sentence };
  }
  if (error instanceof CallFailedError) return { failed: error.kind, error: `Slack was not reached: ${lineOf(error)}` };
  if (codeOf(error) === "ENOENT" || codeOf(error) === "EACCES") return { failed: "refused", error: messageOf(error) };
  return { failed: "unknown", error: messageOf(error) };
}

/** The system's name of what went wrong on the way. */
const lineOf = (error: unknown) => failureCode(error) ?? "no answer";

/** Slack's names for a token that will not do, whatever is tried. */
const REFUSED =
  /^(?:not_authed|invalid_auth|account_inactive|token_revoked|token_expired|not_allowed_token_type|missing_scope|no_permission|user_removed_from_team|team_disabled)$/;

export function connectFailure(error: unknown, variable: string): PlatformError {
  if (error instanceof PlatformError) return error;
  const name = errorCode(error);
  if (name !== null && REFUSED.test(name))
    return new PlatformError(name, `Slack refused the token (${name}); set ${variable} again: hermes gateway setup`, {
      retryable: false,
      cause: error,
    });
  const why = error instanceof SlackError ? (name ?? statusWords(error)) : lineOf(error);
  return new PlatformError("not_connected", `Slack could not be reached (${why})`, { retryable: true, cause: error });
}

const statusWords = ({ status, retryAfter }: SlackError) =>
  retryAfter === undefined ? `status ${status}` : `rate limit, ${retryAfter} s`;
