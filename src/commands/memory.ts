// `/memory`: what is remembered, and writes that wait for the user's leave.
import type { Memory } from "../memory/open.ts";
import type { CommandContext } from "./context.ts";
import type { CommandDefinition } from "./definition.ts";
import { approvedText, nothingOf, pendingList, switchApproval } from "./pending.ts";

const memory: CommandDefinition = {
  name: "memory",
  description: "what the agent remembers, and writes that wait for you",
  category: "Tools & Skills",
  argsHint: "[show|pending|approve|reject|approval]",
  async run(args, ctx) {
    const store = ctx.conversation.memory;
    if (!store) return ctx.warn("This conversation has no memory.");
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
        return ctx.warn(
          `/memory does not know "${verb}". It knows show, pending, approve ID|all, reject ID|all, approval on|off.`,
        );
    }
  },
};

async function overview(store: Memory, ctx: CommandContext): Promise<string> {
  const { FILE_NAMES, TARGETS, lengthOf } = await import("../memory/format.ts");
  const { longUsage } = await import("../memory/usage.ts");
  const parts: string[] = [];
  for (const target of TARGETS) {
    const reading = await store.read(target);
    const off = store.isEnabled(target) ? "" : "  (switched off)";
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
  const { tellUser } = await import("../memory/user-words.ts");
  const answers = [];
  for (const write of await select(store, which)) {
    const result = await store.approve(write);
    const target = write.payload.target === "user" ? "user" : "memory";
    answers.push({ write, error: result.success ? null : tellUser(result, { target, show: "/memory" }) });
  }
  ctx.say(answers.length === 0 ? nothingOf(which) : approvedText(answers));
}

async function reject(store: Memory, which: string, ctx: CommandContext): Promise<void> {
  if (which === "") return ctx.warn("/memory reject needs an id, or all. /memory pending lists them.");
  const writes = await select(store, which);
  for (const write of writes) await store.reject(write);
  ctx.say(writes.length === 0 ? nothingOf(which) : `Thrown away: ${writes.map(({ id }) => id).join(", ")}`);
}

export const MEMORY_COMMANDS: readonly CommandDefinition[] = [memory];
