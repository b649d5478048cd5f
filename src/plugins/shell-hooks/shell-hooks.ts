// The user's programs as listeners. None runs without consent for the very bytes it consists of.
import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Ask } from "../../safety/decision.ts";
import type { HookBus, Payload } from "../hooks.ts";
import { ConsentStore, expandHome, type ScriptFacts, scriptFacts } from "./consent.ts";
import {
  type HookAnswer,
  type HookRunResult,
  hookInput,
  readAnswer,
  readHookSettings,
  runHook,
  type ShellHook,
} from "./run.ts";

interface ShellHookPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly osHome: string;
  /** A hook may be a program of this folder. */
  isTrusted(folder: string): boolean;
  readonly consentFile: string;
  /** `hooks` of config.yaml. */
  settings(): Readonly<Record<string, unknown>>;
  /** The user said that unseen hooks may run. */
  autoAccept(): boolean;
  /** What a command may see of the environment: no secret of ours. */
  environment(): Readonly<Record<string, string>>;
  /** What the command policy says of it. */
  judge(command: string): Promise<PolicyVerdict>;
  /** One line for the user. */
  report(line: string): void;
}

interface PolicyVerdict {
  readonly verdict: "allow" | "ask" | "block";
  readonly reason: string;
}

export type HookStanding =
  | { readonly type: "allowed"; readonly by: "consent" | "auto" | "session" }
  | { readonly type: "unseen" }
  /** Its script is not the one that was allowed. */
  | { readonly type: "changed" }
  | { readonly type: "forbidden"; readonly reason: string };

interface HookTrial {
  readonly result: HookRunResult;
  /** Null when it did not end well: then nothing it printed counts. */
  readonly answer: HookAnswer | null;
}

export class ShellHooks {
  readonly consents: ConsentStore;
  readonly #ports: ShellHookPorts;
  /** Allowed or declined until the process ends, for these bytes. */
  readonly #answers = new Map<string, boolean>();
  /** Allowed until the next turn begins. */
  readonly #once = new Set<string>();
  readonly #reported = new Set<string>();

  constructor(ports: ShellHookPorts) {
    this.#ports = ports;
    this.consents = new ConsentStore(ports.consentFile);
  }

  configured(): ReturnType<typeof readHookSettings> {
    return readHookSettings(this.#ports.settings());
  }

  /** Puts every configured hook on the bus; returns how to take them off again. */
  listen(bus: HookBus): () => void {
    const { hooks, problems } = this.configured();
    for (const problem of problems) this.#reportOnce(problem);
    const undo = hooks.map((hook) =>
      bus.add(hook.event, {
        owner: `shell hook ${hook.command}`,
        // The program is stopped by its own limit; the bus only catches what that cannot.
        limitMs: (hook.timeoutSeconds + 5) * 1000,
        call: (payload, signal) => this.#call(hook, payload, signal),
      }),
    );
    return () => {
      for (const take of undo) take();
    };
  }

  async standing(hook: ShellHook, cwd: string): Promise<HookStanding & { readonly facts: ScriptFacts }> {
    const facts = await scriptFacts(hook.argv, { cwd: this.#startIn(cwd), osHome: this.#ports.osHome });
    return { ...(await this.#judge(hook, facts)), facts };
  }

  async #judge(hook: ShellHook, facts: ScriptFacts): Promise<HookStanding> {
    const policy = await this.#ports.judge(hook.command);
    if (policy.verdict === "block") return { type: "forbidden", reason: policy.reason };
    const consent = await this.consents.consentFor(hook, facts);
    if (consent.type === "given") return { type: "allowed", by: "consent" };
    const key = keyOf(hook, facts);
    if (this.#once.has(key) || this.#answers.get(key) === true) return { type: "allowed", by: "session" };
    // "All of them" was said before anybody knew that one of them is dangerous.
    if (this.#ports.autoAccept() && policy.verdict === "allow") return { type: "allowed", by: "auto" };
    return consent.type === "outdated" ? { type: "changed" } : { type: "unseen" };
  }

  /** Begins a turn: asks about every hook that has no consent yet. Where no user can be asked they stay off, and a notice says so. */
  async settle(asker: { readonly ask: Ask; readonly interactive: boolean; readonly cwd: string }): Promise<void> {
    this.#once.clear();
    for (const hook of this.configured().hooks) {
      const standing = await this.standing(hook, asker.cwd);
      if (standing.type !== "unseen" && standing.type !== "changed") continue;
      const key = keyOf(hook, standing.facts);
      if (this.#answers.has(key)) continue;
      if (!asker.interactive) {
        this.#reportOnce(skipLine(hook, standing));
        continue;
      }
      const { verdict, reason } = await this.#ports.judge(hook.command);
      const danger = verdict === "ask" ? `; the command policy warns: ${reason}` : "";
      const { choice } = await asker.ask({
        kind: "approval",
        command: hook.command,
        description: `a hook from your settings for ${hook.event}, ${standing.type === "changed" ? "changed since you approved it" : "not approved yet"}${danger}`,
        patternKey: `shell_hook:${hook.event}:${hook.command}`,
        allowAlways: true,
        about: "other",
        keptIn: "shell-hooks-allowlist.json",
      });
      if (choice === "once") this.#once.add(key);
      else this.#answers.set(key, choice !== "deny");
      if (choice === "always") await this.consents.approve(hook, standing.facts, this.#ports.clock.now());
      if (choice === "deny") this.#ports.log.info(`shell hook ${hook.command} (${hook.event}) was declined`);
    }
  }

  async #call(hook: ShellHook, payload: Payload, signal?: AbortSignal): Promise<unknown> {
    const { tool_name, cwd } = payload;
    if (hook.matcher !== null && !(typeof tool_name === "string" && hook.matcher.test(tool_name))) return undefined;
    const folder = typeof cwd === "string" && cwd !== "" ? cwd : this.#ports.osHome;
    const standing = await this.standing(hook, folder);
    if (standing.type !== "allowed") {
      if (this.#answers.get(keyOf(hook, standing.facts)) !== false) this.#reportOnce(skipLine(hook, standing));
      return undefined;
    }
    return this.#fire(hook, { ...payload, cwd: folder }, signal);
  }

  /** A relative name must not lead to a program of a stranger's folder, nor a program find its settings there. */
  #startIn(folder: string): string {
    return this.#ports.isTrusted(folder) ? folder : this.#ports.osHome;
  }

  /** Runs a hook now, whatever its consent; for those who asked for exactly that. */
  async tryOut(hook: ShellHook, payload: Payload & { readonly cwd: string }, signal?: AbortSignal): Promise<HookTrial> {
    const { osHome, environment } = this.#ports;
    const session: Record<string, string> =
      typeof payload.session_id === "string" ? { HERMES_SESSION_ID: payload.session_id } : {};
    const result = await runHook({
      argv: hook.argv.map((word) => expandHome(word, osHome)),
      cwd: this.#startIn(payload.cwd),
      env: { ...environment(), ...session },
      timeoutMs: hook.timeoutSeconds * 1000,
      stdin: hookInput(hook.event, payload),
      signal,
    });
    const ended = result.type === "ended" && result.code === 0;
    return { result, answer: ended ? readAnswer(hook, result.stdout) : null };
  }

  async #fire(hook: ShellHook, payload: Payload & { readonly cwd: string }, signal?: AbortSignal): Promise<unknown> {
    const { log } = this.#ports;
    const name = `Shell hook ${hook.command} (${hook.event})`;
    const { result, answer } = await this.tryOut(hook, payload, signal);
    if (result.type === "failed") {
      if (signal?.aborted) log.debug(`${name}: ${result.reason}`);
      else this.#reportOnce(`${name} is ignored: ${result.reason}.`);
      return undefined;
    }
    if (answer === null) {
      log.warn(`${name} is ignored: it ended with code ${result.code}: ${result.stderr.trim().slice(0, 500)}`);
      return undefined;
    }
    log.debug(`${name} ended after ${result.ms} ms`);
    if (answer.type === "block") return { action: "block", message: answer.message };
    if (answer.type === "context") return { context: answer.text };
    if (answer.type === "ignored") log.warn(`${name}: ${answer.why}; it is ignored`);
    return undefined;
  }

  #reportOnce(line: string): void {
    if (this.#reported.has(line)) return;
    this.#reported.add(line);
    this.#ports.log.warn(line);
    this.#ports.report(line);
  }
}

function skipLine(hook: ShellHook, standing: HookStanding): string {
  const name = `Shell hook ${hook.command} (${hook.event}) is skipped`;
  if (standing.type === "forbidden") return `${name}: the command policy refuses it (${standing.reason}).`;
  const why = standing.type === "changed" ? "its script changed since you approved it" : "you have not approved it yet";
  return `${name}: ${why}. "hermes hooks test ${hook.event}" shows it; an interactive run asks; --accept-hooks allows all for one run.`;
}

function keyOf({ event, command }: ShellHook, { sha256 }: ScriptFacts): string {
  return `${event}\n${command}\n${sha256}`;
}
