// What an editor's client names and what the store has of it: the folder and the servers it opens a conversation with, the list, the transcript.
import { randomUUID } from "node:crypto";
import { isAbsolute } from "node:path";
import {
  type ListSessionsRequest,
  type ListSessionsResponse,
  type McpServer,
  RequestError,
  type SessionInfo,
} from "@agentclientprotocol/sdk";
import { isDirectory } from "../../kit/files.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import { resolveLinks } from "../../safety/paths.ts";
import type { SessionListItem, SessionStore } from "../../sessions/store.ts";

export const PLATFORM = "acp";
const PER_PAGE = 50;

/** What a client says when it opens a conversation. */
export interface AskedPlace {
  readonly cwd: string;
  readonly mcpServers?: readonly McpServer[] | null | undefined;
}

export interface OpenPlace extends AskedPlace {
  /** The folder behind links: files are worked on by their real paths, and the editor knows them by those it opened. */
  readonly realCwd: string;
}

export async function checkedPlace({ cwd, mcpServers }: AskedPlace): Promise<OpenPlace> {
  const path = pathHere(cwd);
  if (!isAbsolute(path)) throw RequestError.invalidParams({ cwd }, `cwd must be an absolute path: ${cwd}`);
  if (!(await isDirectory(path))) throw RequestError.invalidParams({ cwd }, `There is no such folder: ${path}`);
  return { cwd: path, realCwd: await resolveLinks(path), mcpServers };
}

/** An editor on Windows names its folders its own way to an agent in WSL. */
function pathHere(path: string): string {
  const [, drive, rest] = process.platform === "linux" ? (/^([A-Za-z]):[\\/](.*)$/s.exec(path) ?? []) : [];
  return drive === undefined ? path : `/mnt/${drive.toLowerCase()}/${(rest ?? "").replaceAll("\\", "/")}`;
}

// `/new` begins another conversation in a tab that its client goes on to know by the same id. From then on that id leads to the new one,
// and the one that was left gets an id of its own, by which the client's list offers it.

const TAB = "acp-tab:";

/** The first session of the conversation that a client means. */
export async function conversationBehind(store: SessionStore, clientId: string): Promise<string> {
  return (await store.getMeta(TAB + clientId)) ?? clientId;
}

/** From here on the client's id leads to `next`. */
export async function turnTab(store: SessionStore, clientId: string, next: string): Promise<void> {
  const left = await conversationBehind(store, clientId);
  if (left === next) return;
  const tabs = await store.allMeta(TAB);
  const ownId = left !== clientId && !tabs.has(TAB + left);
  const isOffered = ownId || [...tabs].some(([key, one]) => one === left && key !== TAB + clientId);
  if (!isOffered) await store.setMeta(TAB + randomUUID(), left);
  await store.setMeta(TAB + clientId, next);
}

/** By session: the id by which clients know its conversation, where that is another one. */
async function clientIds(store: SessionStore): Promise<ReadonlyMap<string, string>> {
  return new Map([...(await store.allMeta(TAB))].map(([key, session]) => [session, key.slice(TAB.length)]));
}

/** What a client says of its servers, as the settings would say it. */
export function serversOf(servers: readonly McpServer[]): Readonly<Record<string, unknown>> {
  const pairs = (list: readonly { readonly name: string; readonly value: string }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    servers.map((server) => {
      if ("command" in server)
        return [server.name, { command: server.command, args: [...server.args], env: pairs(server.env) }];
      return [server.name, { url: server.url, transport: server.type, headers: pairs(server.headers) }];
    }),
  );
}

/** One page of what was said in editors, newest first. An unknown cursor is an empty page. */
export async function pageOf(
  store: SessionStore,
  { cwd, cursor }: Pick<ListSessionsRequest, "cwd" | "cursor">,
): Promise<ListSessionsResponse> {
  const wanted = cwd ? pathHere(cwd) : null;
  const rows = (await allOf(store)).filter((row) => wanted === null || cwdOf(row) === wanted);
  const known = await clientIds(store);
  const idOf = ({ lineageRootId }: SessionListItem) => known.get(lineageRootId) ?? lineageRootId;
  const after = cursor ? rows.findIndex((row) => idOf(row) === cursor) : -1;
  if (cursor && after < 0) return { sessions: [] };
  const page = rows.slice(after + 1, after + 1 + PER_PAGE);
  const last = page.at(-1);
  const isMore = last !== undefined && rows.length > after + 1 + page.length;
  return { sessions: page.map((row) => infoOf(row, idOf(row))), ...(isMore && { nextCursor: idOf(last) }) };
}

async function allOf(store: SessionStore): Promise<readonly SessionListItem[]> {
  const step = 500;
  const rows: SessionListItem[] = [];
  for (let offset = 0; ; offset += step) {
    const some = await store.list({
      ...{ source: PLATFORM, limit: step, offset },
      ...{ minMessageCount: 1, orderByLastActive: true },
    });
    rows.push(...some);
    if (some.length < step) return rows;
  }
}

function cwdOf({ cwd, modelConfig }: SessionListItem): string {
  const kept = modelConfig?.cwd;
  return cwd ?? (typeof kept === "string" ? kept : "");
}

function infoOf(row: SessionListItem, sessionId: string): SessionInfo {
  return {
    sessionId,
    cwd: cwdOf(row) || "/",
    title: row.title ?? row.preview,
    updatedAt: new Date(row.lastActive * 1000).toISOString(),
  };
}

/** The conversation from its beginning: what a compression carried on is told once. */
export async function transcriptOf(store: SessionStore, sessionId: string): Promise<readonly HistoryMessage[]> {
  const said: HistoryMessage[] = [];
  for (const one of await store.conversation(sessionId)) {
    const written: unknown = await store.getValue(one, "compression");
    const last =
      typeof written === "object" &&
      written !== null &&
      "child" in written &&
      written.child === one &&
      "last" in written
        ? Number(written.last)
        : 0;
    said.push(...(await store.load(one)).filter(({ id }) => id > last));
  }
  return said;
}
