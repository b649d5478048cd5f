// `/memory`: the agent's memory, and writes that wait for approval.
import { t } from "../home/language/words.ts";
import type { Memory } from "../memory/open.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";

const memory: CommandDefinition = {
  name: "memory",
  description: "show memory and pending memory writes",
  category: "Tools & Skills",
  argsHint: "[show|pending|approve|reject|approval]",
  async run(args, ctx) {
    const store = ctx.conversation.memory;
    if (!store) return ctx.warn("Memory is off in this conversation.");
    const [verb = "", which = ""] = args.split(/\s+/).filter((word) => word !== "");
    switch (verb.toLowerCase()) {
      case "":
      case "show":
      case "list":
        return ctx.say(await overview(store, ctx));
      case "pending":
        return ctx.say(pendingList(await store.pending(), "memory"));
      case "approve":
      case "apply":
        return approve(store, which, ctx);
      case "reject":
      case "deny":
      case "drop":
        return reject(store, which, ctx);
      case "approval":
        return switchApproval(which, "memory", ctx);
      default:
        return ctx.warn(`Unknown: /memory ${verb}. Use show, pending, approve ID|all, reject ID|all, approval on|off.`);
    }
  },
};

async function overview(store: Memory, ctx: CommandContext): Promise<string> {
  const { FILE_NAMES, TARGETS, lengthOf, longUsage } = await import("../memory/entries.ts");
  const parts: string[] = [];
  for (const target of TARGETS) {
    const reading = await store.read(target);
    const off = store.isEnabled(target) ? "" : "  (disabled)";
    if (reading.type === "unreadable") {
      parts.push(`${FILE_NAMES[target]} cannot be read: ${reading.reason}`);
      continue;
    }
    const usage = longUsage(lengthOf(reading.entries), store.limitOf(target));
    const entries = reading.entries.map((entry, index) => `  ${index + 1}. ${entry.replaceAll("\n", "\n     ")}`);
    parts.push(
      [`${FILE_NAMES[target]}  ${usage}${off}`, ...(entries.length > 0 ? entries : ["  nothing yet"])].join("\n"),
    );
  }
  const waiting = (await store.pending()).length;
  if (waiting > 0) parts.push(`${waiting} write${waiting === 1 ? " waits" : "s wait"} for you: /memory pending`);
  const { provider } = ctx.home.config().memory;
  if (provider !== "") parts.push(`External provider: ${provider}`);
  return parts.join("\n\n");
}

async function select(store: Memory, which: string) {
  const all = await store.pending();
  return which === "all" ? all : all.filter(({ id }) => id === which);
}

async function approve(store: Memory, which: string, ctx: CommandContext): Promise<void> {
  if (which === "") return ctx.warn("/memory approve needs an id, or all. /memory pending lists them.");
  const { explainFailure } = await import("../memory/request.ts");
  const answers = [];
  for (const write of await select(store, which)) {
    const result = await store.approve(write);
    const target = write.payload.target === "user" ? "user" : "memory";
    answers.push({ write, error: result.success ? null : explainFailure(result, { target, show: "/memory" }) });
  }
  ctx.say(answers.length === 0 ? nothingOf(which) : approvedText(answers));
}

async function reject(store: Memory, which: string, ctx: CommandContext): Promise<void> {
  if (which === "") return ctx.warn("/memory reject needs an id, or all. /memory pending lists them.");
  const writes = await select(store, which);
  for (const write of writes) await store.reject(write);
  ctx.say(writes.length === 0 ? nothingOf(which) : `Discarded: ${writes.map(({ id }) => id).join(", ")}`);
}

export const MEMORY_COMMANDS: readonly CommandDefinition[] = [memory];

// What `/memory` and `/skills` have in common: writes that wait for approval.

interface WaitingWrite {
  readonly id: string;
  readonly origin: string;
  readonly summary: string;
  readonly source?: string | undefined;
}

const AUTOMATIC: ReadonlySet<string> = new Set(["background_review", "curator", "flush", "cron"]);

/** One line each, oldest first. */
export function pendingList(writes: readonly WaitingWrite[], command: string): string {
  if (writes.length === 0) return "Nothing is pending approval.";
  const lines = writes.map(({ id, origin, summary, source }) => {
    const after = source === undefined ? "" : ` ${t("[after text from outside: {source}]", { source })}`;
    return `  ${id}${AUTOMATIC.has(origin) ? " [auto]" : ""}${after}  ${summary}`;
  });
  return `${lines.join("\n")}\n/${command} approve ID|all applies them, /${command} reject ID|all discards them.`;
}

/** The results of approved writes; those that failed stay pending. */
export function approvedText(
  answers: readonly { readonly write: WaitingWrite; readonly error: string | null }[],
): string {
  const done = answers.filter(({ error }) => error === null).map(({ write }) => `✓ ${write.id}  ${write.summary}`);
  const failed = answers.flatMap(({ write, error }) =>
    error === null ? [] : [`✗ ${write.id}  ${error} It is still pending.`],
  );
  return [...done, ...failed].join("\n");
}

export const nothingOf = (which: string) =>
  which === "all" || which === "" ? "Nothing is pending approval." : `No pending write has the id ${which}.`;

/** `approval on|off`, kept in config.yaml. */
export async function switchApproval(word: string, key: "memory" | "skills", ctx: CommandContext): Promise<void> {
  const path = `${key}.write_approval`;
  const on = /^(on|true|yes|1|approve|enabled)$/i.test(word);
  if (word !== "" && !on && !/^(off|false|no|0|disabled)$/i.test(word))
    return ctx.warn(`/${key} approval takes on or off, not "${word}".`);
  if (word !== "") await ctx.home.setConfigKey(path, on);
  const now = ctx.home.config()[key].write_approval;
  ctx.say(`Approval of ${key === "memory" ? "memory" : "skill"} writes: ${now ? "on" : "off"}`);
}
