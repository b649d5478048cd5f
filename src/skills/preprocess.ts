// SKILL.md on its way to the model: two placeholders, and, where the user wants it, output of commands.
import { type ChildProcess, spawn } from "node:child_process";
import { truncateCodePoints } from "../kit/code-points.ts";
import { type ApprovalOutcome, clearedText } from "../safety/decision.ts";

const MAX_OUTPUT = 4000;
const TRUNCATED = "...[truncated]";

interface Preprocessing {
  /** `skills.template_vars` */
  readonly variables: boolean;
  readonly skillDir: string;
  readonly sessionId?: string | undefined;
  /** Absent: commands in the text stay text. */
  readonly shell?: { readonly run: InlineShell; readonly timeoutSeconds: number } | undefined;
}

/** Runs one command of a skill. Never rejects. */
export type InlineShell = (
  command: string,
  options: { readonly cwd: string; readonly timeoutMs: number },
) => Promise<
  | { readonly type: "done"; readonly stdout: string; readonly stderr: string }
  | { readonly type: "timeout" }
  | { readonly type: "failed"; readonly reason: string }
>;

export async function preprocess(text: string, how: Preprocessing): Promise<string> {
  const filled = how.variables ? fillIn(text, how) : text;
  return how.shell ? runSnippets(filled, how.skillDir, how.shell) : filled;
}

function fillIn(text: string, { skillDir, sessionId }: Preprocessing): string {
  return text.replace(/\$\{(HERMES_SKILL_DIR|HERMES_SESSION_ID)\}/g, (whole, name: string) =>
    name === "HERMES_SKILL_DIR" ? skillDir : (sessionId ?? whole),
  );
}

async function runSnippets(
  text: string,
  cwd: string,
  { run, timeoutSeconds }: NonNullable<Preprocessing["shell"]>,
): Promise<string> {
  const outputs: string[] = [];
  const snippets = [...text.matchAll(/!`([^`\n]+)`/g)];
  for (const [, command = ""] of snippets) {
    const result = await run(command, { cwd, timeoutMs: timeoutSeconds * 1000 });
    if (result.type === "timeout") outputs.push(`[inline-shell timeout after ${timeoutSeconds}s: ${command}]`);
    else if (result.type === "failed") outputs.push(`[inline-shell error: ${result.reason}]`);
    else outputs.push(cut((result.stdout || result.stderr).replace(/(?<![\r\n])[\r\n]+$/, "")));
  }
  // Pieced together by position: what a command printed is never looked at again.
  let rest = 0;
  let whole = "";
  snippets.forEach((snippet, index) => {
    whole += text.slice(rest, snippet.index) + (outputs[index] ?? "");
    rest = snippet.index + snippet[0].length;
  });
  return whole + text.slice(rest);
}

function cut(output: string): string {
  const kept = truncateCodePoints(output, MAX_OUTPUT);
  return kept === output ? output : kept + TRUNCATED;
}

/** bash with these variables and no input, for what `decide` lets through. */
export function bashSnippets(
  environment: Readonly<Record<string, string>>,
  decide: (command: string) => ApprovalOutcome,
): InlineShell {
  return async (command, options) => {
    const outcome = decide(command);
    if (!outcome.approved) return { type: "failed", reason: `not run: ${outcome.message}` };
    return runBash(clearedText(outcome.cleared), environment, options);
  };
}

function runBash(
  command: string,
  environment: Readonly<Record<string, string>>,
  { cwd, timeoutMs }: Parameters<InlineShell>[1],
): ReturnType<InlineShell> {
  return new Promise((resolve) => {
    let timedOut = false;
    const out = { stdout: "", stderr: "" };
    const child = spawn("bash", ["-c", command], {
      cwd,
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child);
    }, timeoutMs);
    const collect = (name: "stdout" | "stderr") =>
      child[name].setEncoding("utf8").on("data", (chunk: string) => {
        if (out[name].length < MAX_OUTPUT * 4) out[name] += chunk;
      });
    collect("stdout");
    collect("stderr");
    child.on("error", (error) => {
      clearTimeout(timer);
      resolve({ type: "failed", reason: error.message });
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (timedOut) resolve({ type: "timeout" });
      else if (code !== 0 && out.stdout === "" && out.stderr === "")
        resolve({ type: "failed", reason: `the command ended with code ${code}` });
      else resolve({ type: "done", ...out });
    });
  });
}

/** The whole group: a child of bash may hold the pipe open long after bash is gone. */
function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL"); // no groups here, or it has just ended by itself
  }
}
