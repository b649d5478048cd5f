// The conversations of one editor: begun, loaded, resumed, copied and listed, each step of one conversation after the other.
import { randomUUID } from "node:crypto";
import { join, relative } from "node:path";
import {
  type AgentContext,
  type ClientCapabilities,
  type ListSessionsResponse,
  type NewSessionResponse,
  RequestError,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { openAgent } from "../../agent/open.ts";
import type { OpenRequest } from "../../agent/open-request.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { isWithin } from "../../kit/files.ts";
import { KeyedSteps } from "../../kit/steps.ts";
import type { ShowCommand } from "../../sandbox/environment.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { EditorFiles } from "../../tools/toolset/context.ts";
import { offeredCommands } from "./commands.ts";
import { type EditMode, isEditMode, mayWriteUnasked, modeState } from "./edits.ts";
import { configOptions, knownModels, type ModelRow, modelId, parseModelId } from "./options.ts";
import { Permissions } from "./permissions.ts";
import { EditorSession, type OpenHow } from "./session.ts";
import {
  type AskedPlace,
  checkedPlace,
  conversationBehind,
  type OpenPlace,
  PLATFORM,
  pageOf,
  serversOf,
  transcriptOf,
  turnTab,
} from "./stored.ts";
import { Updates } from "./updates.ts";

/** Kept of what a command prints in a terminal of the editor. */
const SHOWN_BYTES = 4_000_000;

interface EditorWorld {
  readonly home: OpenHome;
  readonly clock: Clock;
  store(): Promise<SessionStore>;
  /** The way to the editor, and what it said it can do. */
  readonly client: AgentContext;
  readonly capabilities: ClientCapabilities;
}

interface Held {
  readonly session: EditorSession;
  readonly place: OpenPlace;
  mode: EditMode;
  models: readonly ModelRow[];
}

type Offered = Pick<NewSessionResponse, "modes" | "configOptions"> & {
  /** For clients of before models were an option. */
  readonly models: { readonly currentModelId: string; readonly availableModels: readonly LegacyModel[] };
};
interface LegacyModel {
  readonly modelId: string;
  readonly name: string;
}

export class EditorSessions {
  readonly #world: EditorWorld;
  readonly #held = new Map<string, Held>();
  /** One step at a time for each conversation: two loads never open two agents. */
  readonly #steps = new KeyedSteps();
  #closing = false;

  constructor(world: EditorWorld) {
    this.#world = world;
  }

  get(id: string): EditorSession | null {
    return this.#held.get(id)?.session ?? null;
  }

  async begin(asked: AskedPlace): Promise<NewSessionResponse> {
    const place = await checkedPlace(asked);
    const id = randomUUID();
    return this.#steps.run(id, async () => ({ sessionId: id, ...(await this.#hold(id, place, { type: "new", id })) }));
  }

  /** Tells everything that was said before it resolves. Rejects for a conversation that does not exist. */
  async load(id: string, asked: AskedPlace): Promise<Offered> {
    const place = await checkedPlace(asked);
    return this.#steps.run(id, async () => {
      const how = await this.#behind(id);
      if (how.type === "new" && how.id === id) throw RequestError.resourceNotFound(id);
      const offered = await this.#hold(id, place, how);
      const held = this.#held.get(id);
      if (held)
        await held.session.replay(
          await transcriptOf(await this.#world.store(), held.session.conversation.agent.sessionId),
        );
      return offered;
    });
  }

  /** The same without telling it; one that does not exist begins. */
  async resume(id: string, asked: AskedPlace): Promise<Offered> {
    const place = await checkedPlace(asked);
    if (!/^[\w.-]{1,128}$/.test(id)) throw RequestError.invalidParams(undefined, `${id} is no session id`);
    return this.#steps.run(id, async () => {
      const open = this.#held.get(id);
      if (open) return this.#offered(open);
      return this.#hold(id, place, await this.#behind(id));
    });
  }

  /** A copy with an id of its own; the original goes on as it was. */
  async fork(id: string, asked: AskedPlace): Promise<NewSessionResponse> {
    const place = await checkedPlace(asked);
    const copy = randomUUID();
    await this.#steps.run(id, async () => {
      const open = this.#held.get(id)?.session.conversation;
      const source = open?.agent.sessionId ?? (await this.#stored(id));
      const store = await this.#world.store();
      const row = source === null ? null : await store.get(source);
      // What was never said to is not stored, and its copy is a new conversation.
      if (source === null || (row === null && !open)) throw RequestError.resourceNotFound(id);
      if (row === null) return;
      await store.branch(source, copy);
      await store.reopen(source);
    });
    const isStored = (await (await this.#world.store()).get(copy)) !== null;
    const how: OpenHow = { type: isStored ? "resume" : "new", id: copy };
    return this.#steps.run(copy, async () => ({ sessionId: copy, ...(await this.#hold(copy, place, how)) }));
  }

  async list(asked: Parameters<typeof pageOf>[1]): Promise<ListSessionsResponse> {
    return pageOf(await this.#world.store(), asked);
  }

  async setMode(id: string, mode: string): Promise<void> {
    const held = this.#require(id);
    if (!isEditMode(mode)) throw RequestError.invalidParams({ modeId: mode }, `There is no mode "${mode}"`);
    held.mode = mode;
    await this.#send(id, { sessionUpdate: "config_option_update", configOptions: this.#options(held) });
  }

  async setOption(id: string, option: string, value: unknown) {
    const held = this.#require(id);
    if (typeof value !== "string") throw RequestError.invalidParams(undefined, `"${option}" takes one of its values`);
    if (option === "mode") {
      if (!isEditMode(value)) throw RequestError.invalidParams({ value }, `There is no mode "${value}"`);
      held.mode = value;
      await this.#send(id, { sessionUpdate: "current_mode_update", currentModeId: value });
    } else if (option === "model") await this.setModel(id, value);
    else throw RequestError.invalidParams({ configId: option }, `There is no option "${option}"`);
    return { configOptions: this.#options(held) };
  }

  /** All or nothing; the conversation keeps what was said. */
  async setModel(id: string, wanted: string): Promise<void> {
    const held = this.#require(id);
    const { conversation } = held.session;
    const present = conversation.providerName;
    const { model, provider } = parseModelId(wanted, held.models, present);
    if (wanted === currentModel(conversation)) return;
    try {
      await conversation.switchModel({ model, provider: provider === present ? undefined : provider });
    } catch (error) {
      throw RequestError.invalidParams({ model: wanted }, messageOf(error));
    }
  }

  async close(id: string): Promise<void> {
    await this.#steps.run(id, async () => {
      const held = this.#held.get(id);
      this.#held.delete(id);
      await held?.session.close();
    });
  }

  /** The client is gone: what runs ends, and is stored. */
  async closeAll(): Promise<void> {
    this.#closing = true;
    for (const { session } of this.#held.values()) session.cancel();
    await this.#steps.settled();
    await Promise.allSettled([...this.#held.values()].map(({ session }) => session.close()));
    this.#held.clear();
  }

  // --- one conversation

  async #hold(id: string, place: OpenPlace, how: OpenHow): Promise<Offered> {
    const before = this.#held.get(id);
    if (before) {
      // Loaded once more: what runs is of a view that no longer exists.
      this.#held.delete(id);
      await before.session.close();
    }
    const { home, capabilities, clock } = this.#world;
    const log = home.log.child("acp");
    const permissions = new Permissions(
      (request, signal) =>
        this.#world.client.request(
          "session/request_permission",
          { sessionId: id, ...request },
          { cancellationSignal: signal, stopWaitingOnCancel: true },
        ),
      log,
      () => this.#held.get(id)?.session.stopTurn(),
    );
    const modeNow = () => this.#held.get(id)?.mode ?? "default";
    const updates = new Updates({
      capabilities,
      cwd: () => this.#held.get(id)?.session.conversation.cwd ?? place.cwd,
      now: () => clock.now(),
    });
    const open = (next: OpenHow) => openAgent(this.#request(id, place, next, { permissions, updates, modeNow }));
    const opened = await openedOr(open(how));
    if (this.#closing) {
      await opened.close("agent_close");
      throw RequestError.internalError(undefined, "the connection is closed");
    }
    const session = new EditorSession(opened, {
      ...{ id, log, permissions, updates },
      world: { home, clock, platform: PLATFORM },
      send: (update) => this.#send(id, update),
      open: async (next) => {
        if (next.type === "again") return open(await this.#again(id));
        const other = await open(next);
        await turnTab(await this.#world.store(), id, next.id);
        return other;
      },
      trustsNow: (signal) => this.#trustsNow(place.cwd, permissions, signal),
      changed: () => this.#tellOptions(id),
    });
    const held: Held = { session, place, mode: before?.mode ?? "default", models: [] };
    this.#held.set(id, held);
    const { rows, whole } = await this.#models(opened, false);
    held.models = rows;
    if (!whole) this.#laterModels(id, held).catch(ignore);
    setImmediate(() => this.#tellCommands(id).catch(ignore));
    return this.#offered(held);
  }

  /** The same conversation with the same model, whether something was said in it or not. */
  async #again(id: string): Promise<OpenHow> {
    const present = this.#held.get(id)?.session.conversation;
    const sessionId = present?.agent.sessionId ?? id;
    const model = present && { model: present.target.model, provider: present.providerName };
    const isStored = (await (await this.#world.store()).get(sessionId)) !== null;
    return { type: isStored ? "resume" : "new", id: sessionId, ...model };
  }

  /** Reads and writes of the project go through the editor where it offers both: what is not saved yet counts. */
  #editorFiles(sessionId: string, { cwd, realCwd }: OpenPlace): EditorFiles | undefined {
    const { client, capabilities } = this.#world;
    if (!capabilities.fs?.readTextFile || !capabilities.fs.writeTextFile) return undefined;
    const known = (path: string) => join(cwd, relative(realCwd, path));
    return {
      covers: (path) => path !== realCwd && isWithin(path, realCwd),
      read: async (path) => (await client.request("fs/read_text_file", { sessionId, path: known(path) })).content,
      write: async (path, content) =>
        void (await client.request("fs/write_text_file", { sessionId, path: known(path), content })),
    };
  }

  #showCommand(sessionId: string, updates: Updates): ShowCommand | undefined {
    const { client, capabilities } = this.#world;
    if (!capabilities.terminal) return undefined;
    return async (callId, { command, args, cwd }) => {
      if (updates.idOf(callId) === null) return null; // of a sub-agent
      const terminal = await client.createTerminal({
        ...{ sessionId, command, args: [...args], cwd, outputByteLimit: SHOWN_BYTES },
      });
      const update = updates.showTerminal(callId, terminal.id);
      if (update) await this.#send(sessionId, update);
      return {
        finished: terminal
          .waitForExit()
          .then(({ exitCode, signal }) => ({ exitCode: exitCode ?? null, signal: signal ?? null })),
        output: async () => (await terminal.currentOutput()).output,
        kill: async () => void (await terminal.kill()),
        release: async () => void (await terminal.release()),
      };
    };
  }

  #request(
    id: string,
    place: OpenPlace,
    how: OpenHow,
    parts: {
      readonly permissions: Permissions;
      readonly updates: Updates;
      modeNow(): EditMode;
    },
  ): OpenRequest {
    const { home, clock } = this.#world;
    const { permissions, updates, modeNow } = parts;
    const { cwd, mcpServers } = place;
    return {
      ...{ home, clock, cwd, platform: PLATFORM, source: PLATFORM },
      store: () => this.#world.store(),
      interactive: true,
      titles: true,
      restoreCwd: false,
      cwdIsChosen: true,
      ...modelOf(how, home),
      connectWith: "hermes acp --setup",
      ...(how.type === "new" ? { sessionId: how.id } : {}),
      ...(how.type === "resume" ? { resume: { name: how.id } } : {}),
      mcpServers: serversOf(mcpServers ?? []),
      editorFiles: this.#editorFiles(id, place),
      showCommand: this.#showCommand(id, updates),
      reviewEdits: async (edits, { callId, signal, confirmed }) => {
        updates.noteEdits(callId, edits);
        if (confirmed || (await mayWriteUnasked(modeNow(), edits, cwd))) return "yes";
        return permissions.edit(edits, edits.map(({ path }) => path).join(", "), signal);
      },
    };
  }

  async #trustsNow(cwd: string, permissions: Permissions, signal: AbortSignal): Promise<boolean> {
    const { home, clock } = this.#world;
    const { folder, standing } = home.folders.standing(cwd);
    if (standing !== "unknown" || home.unwritable !== null) return false;
    const said = await permissions.trust(folder, signal);
    if (said === null) return false;
    await home.folders.decide(folder, { by: "start", lookOnly: said === "look only", at: new Date(clock.now()) });
    return said === "trust";
  }

  // --- what can be chosen

  async #models(conversation: OpenAgent, patient: boolean) {
    return knownModels(conversation, { patient });
  }

  async #laterModels(id: string, held: Held): Promise<void> {
    const { rows } = await this.#models(held.session.conversation, true);
    if (this.#held.get(id) !== held || rows.length <= held.models.length) return;
    held.models = rows;
    await this.#tellOptions(id);
  }

  #options({ session, models, mode }: Held) {
    return configOptions(models, currentModel(session.conversation), mode);
  }

  #offered(held: Held): Offered {
    const current = currentModel(held.session.conversation);
    const rows = held.models.some(({ id }) => id === current)
      ? held.models
      : [{ id: current, name: held.session.conversation.target.model }, ...held.models];
    held.models = rows;
    return {
      modes: modeState(held.mode),
      configOptions: this.#options(held),
      models: { currentModelId: current, availableModels: rows.map(({ id, name }) => ({ modelId: id, name })) },
    };
  }

  async #tellOptions(id: string): Promise<void> {
    const held = this.#held.get(id);
    if (!held) return;
    this.#offered(held); // the present model is among those that are listed
    await this.#send(id, { sessionUpdate: "config_option_update", configOptions: this.#options(held) });
  }

  async #tellCommands(id: string): Promise<void> {
    await this.#send(id, { sessionUpdate: "available_commands_update", availableCommands: offeredCommands() });
  }

  // --- what is stored

  async #stored(id: string): Promise<string | null> {
    const store = await this.#world.store();
    const root = await conversationBehind(store, id);
    return (await store.get(root)) === null ? null : store.resumeTarget(root);
  }

  /** The conversation that a client's id leads to; nothing was said in it yet: it begins. */
  async #behind(id: string): Promise<Exclude<OpenHow, { type: "again" }>> {
    const root = await conversationBehind(await this.#world.store(), id);
    return { type: (await this.#stored(id)) === null ? "new" : "resume", id: root };
  }

  #require(id: string): Held {
    const held = this.#held.get(id);
    if (!held) throw RequestError.resourceNotFound(id);
    return held;
  }

  async #send(sessionId: string, update: SessionUpdate): Promise<void> {
    await this.#world.client.notify("session/update", { sessionId, update });
  }
}

/** What is told unasked is told to nobody once the client is gone. */
const ignore = () => undefined;

/** What the variables name is for conversations that begin. */
function modelOf(how: OpenHow, home: OpenHome): Pick<OpenRequest, "model" | "provider"> {
  if (how.type === "again") return {};
  if (how.model !== undefined || how.type === "resume") return { model: how.model, provider: how.provider };
  return { model: home.override("HERMES_INFERENCE_MODEL"), provider: home.override("HERMES_INFERENCE_PROVIDER") };
}

const currentModel = ({ target, providerName }: Pick<OpenAgent, "target" | "providerName">) =>
  modelId(providerName, target.model);

/** What is wrong with the settings is said to whoever wants to begin. */
async function openedOr(opening: Promise<OpenAgent>): Promise<OpenAgent> {
  try {
    return await opening;
  } catch (error) {
    throw RequestError.internalError(undefined, messageOf(error));
  }
}
