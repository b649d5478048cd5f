import { estimateTokens } from "../../llm/catalogue/estimate.ts";
import { SAFE_GIT } from "../coding/git-state.ts";
import { fence } from "./file.ts";
import type { Reference } from "./grammar.ts";
import { type Attachment, type ReferenceOptions, warning } from "./ports.ts";

const LIMIT_SECONDS = 30;
// A repository may name programs that show its files.
const SHOWN_BY_GIT = ["--no-color", "--no-ext-diff", "--no-textconv"];

export async function attachGit(reference: Reference, { run, cwd }: ReferenceOptions): Promise<Attachment> {
  const command = commandOf(reference);
  if (!command) return warning("expected a number from 1 to 10");
  const [verb = "", ...rest] = command;
  const args = [...SAFE_GIT, verb, ...SHOWN_BY_GIT, ...rest];
  const result = await run("git", args, { cwd, timeoutMs: LIMIT_SECONDS * 1000 });
  if (result.timedOut) return warning(`git command timed out (${LIMIT_SECONDS}s)`);
  if (result.exitCode !== 0) return warning(result.stderr.trim().split("\n")[0] || "git could not be run");
  const output = result.stdout.trim() === "" ? "(no output)" : result.stdout.replaceAll("\r\n", "\n").trimEnd();
  const title = `🧾 git ${command.join(" ")} (${estimateTokens(output)} tokens)`;
  return { type: "block", text: `${title}\n${fence(output, "diff")}` };
}

function commandOf({ kind, value }: Reference): readonly string[] | null {
  if (kind === "diff") return ["diff"];
  if (kind === "staged") return ["diff", "--staged"];
  if (!/^\d{1,9}$/.test(value)) return null;
  return ["log", `-${Math.min(10, Math.max(1, Number(value)))}`, "-p"];
}
