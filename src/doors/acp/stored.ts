// What an editor's client names and what the store has of it: the folder and the servers it opens a conversation with, the list, the transcript.
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
  const after = cursor ? rows.findIndex((row) => row.lineageRootId === cursor) : -1;
  if (cursor && after < 0) return { sessions: [] };
  const page = rows.slice(after + 1, after + 1 + PER_PAGE);
  const last = page.at(-1);
  const isMore = last !== undefined && rows.length > after + 1 + page.length;
  return { sessions: page.map(infoOf), ...(isMore && { nextCursor: last.lineageRootId }) };
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

function infoOf(row: SessionListItem): SessionInfo {
  return {
    sessionId: row.lineageRootId,
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
