// What `/memory` and `/skills` have in common: writes that wait for the user's leave.
import type { CommandContext } from "./context.ts";

export interface WaitingWrite {
  readonly id: string;
  readonly origin: string;
  readonly summary: string;
}

const AUTOMATIC: ReadonlySet<string> = new Set(["background_review", "curator", "flush", "cron"]);

/** One line each, oldest first. */
export function pendingList(writes: readonly WaitingWrite[], command: string): string {
  if (writes.length === 0) return "Nothing waits for your approval.";
  const lines = writes.map(({ id, origin, summary }) => `  ${id}${AUTOMATIC.has(origin) ? " [auto]" : ""}  ${summary}`);
  return `${lines.join("\n")}\n/${command} approve ID|all lets them through, /${command} reject ID|all throws them away.`;
}

/** What came of letting writes through: what failed is still there. */
export function approvedText(
  answers: readonly { readonly write: WaitingWrite; readonly error: string | null }[],
): string {
  const done = answers.filter(({ error }) => error === null).map(({ write }) => `✓ ${write.id}  ${write.summary}`);
  const failed = answers.flatMap(({ write, error }) =>
    error === null ? [] : [`✗ ${write.id}  ${error} It still waits.`],
  );
  return [...done, ...failed].join("\n");
}

export const nothingOf = (which: string) =>
  which === "all" || which === "" ? "Nothing waits for your approval." : `No write with the id ${which} waits.`;

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
