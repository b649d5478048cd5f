// Code of the user that hears what happens in chats: hooks/<name>/HOOK.yaml and a handler beside it. A hook that fails costs a line in the
// log, never a turn.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { loadYaml, parseText } from "../../home/config/yaml-text.ts";
import type { Logger } from "../../home/log.ts";
import type { HomePaths } from "../../home/paths.ts";
import { type Clock, within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { exists } from "../../kit/files.ts";
import { asTable } from "./settings.ts";
import type { Interception } from "./surface.ts";

type Handle = (event: string, context: Readonly<Record<string, unknown>>) => unknown;

interface Hook {
  readonly name: string;
  readonly events: readonly string[];
  readonly handle: Handle;
}

const HANDLERS = ["handler.js", "handler.mjs", "handler.ts"];
const LONGEST_MS = 30_000;

export class ChatHooks {
  readonly #hooks: readonly Hook[];
  readonly #clock: Clock;
  readonly #log: Logger;

  private constructor(hooks: readonly Hook[], clock: Clock, log: Logger) {
    this.#hooks = hooks;
    this.#clock = clock;
    this.#log = log;
  }

  /** Each folder by itself: a broken one is named in the log, the others load. */
  static async load(paths: HomePaths, clock: Clock, log: Logger): Promise<ChatHooks> {
    const folder = paths.at("hooks");
    const names = await readdir(folder, { withFileTypes: true }).catch(() => []); // no hooks
    const hooks: Hook[] = [];
    for (const { name } of names.filter((one) => one.isDirectory()).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      try {
        const hook = await readHook(join(folder, name), name);
        if (hook) hooks.push(hook);
      } catch (error) {
        log.warn(`the hook ${name} is not loaded: ${messageOf(error)}`);
      }
    }
    return new ChatHooks(hooks, clock, log);
  }

  /** Nothing waits for it. */
  fire(event: string, context: Readonly<Record<string, unknown>>): void {
    for (const hook of this.#for(event)) void this.#call(hook, event, context);
  }

  /** What the hooks of a command decide; the first that decides wins. */
  async intercept(
    name: string,
    args: string,
    context: Readonly<Record<string, unknown>>,
  ): Promise<Interception | null> {
    const event = `command:${name}`;
    const facts = {
      ...context,
      command: name,
      raw_command: `/${name}`,
      args: args.split(/\s+/).filter(Boolean),
      raw_args: args,
    };
    for (const hook of this.#for(event)) {
      const { decision, message, command_name: other, raw_args: rest } = asTable(await this.#call(hook, event, facts));
      const said = typeof message === "string" ? message : undefined;
      if (decision === "deny" || decision === "handled") return { decision, message: said };
      if (decision === "rewrite" && typeof other === "string")
        return { decision, text: `/${other.replace(/^\//, "")} ${typeof rest === "string" ? rest : args}`.trim() };
    }
    return null;
  }

  /** Those that name the event, then those that name its family. */
  #for(event: string): readonly Hook[] {
    const family = `${event.split(":")[0]}:*`;
    return [event, family].flatMap((wanted) => this.#hooks.filter(({ events }) => events.includes(wanted)));
  }

  async #call({ name, handle }: Hook, event: string, context: Readonly<Record<string, unknown>>): Promise<unknown> {
    try {
      return await within(async () => handle(event, context), LONGEST_MS, this.#clock);
    } catch (error) {
      this.#log.warn(`the hook ${name} failed at ${event}`, error);
      return null;
    }
  }
}

async function readHook(folder: string, name: string): Promise<Hook | null> {
  const text = await readFile(join(folder, "HOOK.yaml"), "utf8");
  const parsed = parseText(await loadYaml(), text);
  if (!parsed.ok) throw new Error(`HOOK.yaml, line ${parsed.problem.line}: ${parsed.problem.message}`);
  const { events } = parsed.tree;
  if (!Array.isArray(events) || events.length === 0) throw new Error("HOOK.yaml names no events");
  const found = await Promise.all(HANDLERS.map(async (file) => ((await exists(join(folder, file))) ? file : null)));
  const file = found.find((one) => one !== null);
  if (!file) throw new Error("there is no handler.js, handler.mjs or handler.ts in it; a handler.py does not run here");
  const { handle } = await import(pathToFileURL(join(folder, file)).href);
  if (typeof handle !== "function") throw new Error(`${file} exports no function handle(event, context)`);
  return { name, events: events.map(String), handle };
}
