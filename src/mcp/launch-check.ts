// One policy for every command: a server's command line passes the same table as what an agent wants to run.
import type { Config } from "../home/config/schema.ts";
import { MAX_ANSWER_BYTES, textOf } from "../kit/http.ts";
import { isAllowlisted } from "../safety/approvals.ts";
import type { Homes } from "../safety/scene.ts";
import { classifyCommand } from "../safety/verdict.ts";
import { quote } from "../sandbox/shell-script.ts";
import type { StdioEndpoint } from "./settings.ts";

interface LaunchFacts extends Homes {
  readonly config: Config;
  readonly sudoPasswordSet: boolean;
  /** "Do not ask" for this run. */
  readonly yolo: boolean;
}

type LaunchVerdict =
  | { readonly type: "allow" }
  /** Needs the user's approval; `category` is why. */
  | { readonly type: "ask"; readonly category: string; readonly reason: string }
  | { readonly type: "block"; readonly reason: string };

export function commandLine({ command, args }: Pick<StdioEndpoint, "command" | "args">): string {
  return [command, ...args].map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quote(word))).join(" ");
}

/** What the policy says about starting a server. Yes was said when its whole command line stands in `command_allowlist`. */
export function judgeLaunch(line: string, facts: LaunchFacts): LaunchVerdict {
  const { config } = facts;
  const verdict = classifyCommand(line, { ...facts, denyGlobs: config.approvals.deny });
  if (verdict.verdict === "block") return { type: "block", reason: verdict.reason };
  if (verdict.verdict === "allow" || facts.yolo || config.approvals.mode === "off") return { type: "allow" };
  const { command_allowlist: allowed } = config;
  if (allowed.includes(line) || isAllowlisted(line, verdict.category, allowed)) return { type: "allow" };
  return { type: "ask", category: verdict.category ?? "", reason: verdict.reason };
}

/** The refusal as the user reads it; null = it may be started. */
export function launchRefusal(server: string, line: string, facts: LaunchFacts): string | null {
  const verdict = judgeLaunch(line, facts);
  if (verdict.type === "allow") return null;
  if (verdict.type === "block")
    return `the command policy forbids its command: ${verdict.reason}. Change mcp_servers.${server}.command and args in config.yaml.`;
  return `its command needs your approval: ${verdict.reason} (${verdict.category}). Run "hermes mcp test ${server}" in a terminal and approve it, or add the command line to command_allowlist in config.yaml.`;
}

// Is the package that a server's command fetches known malware? Asked before anything of it runs.

interface FetchedPackage {
  readonly name: string;
  readonly ecosystem: "npm" | "PyPI";
  readonly version: string | null;
}

const OSV = "https://api.osv.dev/v1/query";
const WAIT_MS = 10_000;
const NAMING = new Set(["--package", "--from", "--spec"]);
/** Options of the three runners that take a value of their own. */
const TAKES_VALUE = new Set([
  "--registry",
  "--cache",
  "--userconfig",
  "-c",
  "--call",
  "--python",
  "--with",
  "--index-url",
  "--pip-args",
]);

/** The package a command would fetch and run; null for commands that fetch nothing. */
export function packageOf(command: string, args: readonly string[]): FetchedPackage | null {
  const program = command.replace(/^.*[/\\]/, "").replace(/\.(?:cmd|exe|ps1)$/i, "");
  const ecosystem = program === "npx" ? "npm" : program === "uvx" || program === "pipx" ? "PyPI" : null;
  if (!ecosystem) return null;
  const words = program === "pipx" && args[0] === "run" ? args.slice(1) : args;
  const named = namedPackage(words, program);
  if (named === null) return null;
  return ecosystem === "npm" ? npmPackage(named) : pythonPackage(named);
}

function namedPackage(words: readonly string[], program: string): string | null {
  let first: string | null = null;
  // `-p` is a package to npx, and a version of Python to uvx.
  const namesWithP = program === "npx";
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string; // i is in range
    const [flag, value] = word.startsWith("--") ? word.split(/=(.*)/s) : [word];
    if (NAMING.has(flag as string) || (namesWithP && word === "-p")) return value ?? words[i + 1] ?? null; // split gives at least one part
    if ((TAKES_VALUE.has(flag as string) || word === "-p") && value === undefined)
      i++; // as above
    else if (!word.startsWith("-")) {
      first = word;
      break;
    }
  }
  return first;
}

function npmPackage(text: string): FetchedPackage {
  const at = text.indexOf("@", 1);
  const name = at > 0 ? text.slice(0, at) : text;
  return { name, ecosystem: "npm", version: at > 0 ? versionOf(text.slice(at + 1)) : null };
}

function pythonPackage(text: string): FetchedPackage {
  const [, name = text, version = ""] = /^([^[=<>!~@\s]+)(?:\[[^\]]*\])?(?:\s*(?:==|@)\s*(.*))?/s.exec(text) ?? [];
  return { name, ecosystem: "PyPI", version: versionOf(version) };
}

function versionOf(text: string): string | null {
  const version = text.trim();
  return version === "" || version === "latest" ? null : version;
}

interface OsvQuestion {
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  readonly url?: string;
}

/** What was answered; a package is looked up once per run, not with every reconnect. */
const answered = new Map<string, readonly string[]>();

/** Ids of malware notices; empty when there are none or the service cannot be reached: no network must not mean no tools. */
export async function malwareNotices(found: FetchedPackage, question: OsvQuestion): Promise<readonly string[]> {
  const { name, ecosystem, version } = found;
  const key = JSON.stringify([question.url, name, ecosystem, version]);
  const known = answered.get(key);
  if (known) return known;
  try {
    const response = await question.fetch(question.url ?? OSV, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ package: { name, ecosystem }, version: version ?? undefined }),
      signal: AbortSignal.any([question.signal, AbortSignal.timeout(WAIT_MS)]),
    });
    if (response.status !== 200) return [];
    const answer: unknown = JSON.parse(await textOf(response, MAX_ANSWER_BYTES));
    const notices = idsOf(answer).filter((id) => id.startsWith("MAL-"));
    answered.set(key, notices);
    return notices;
  } catch {
    return []; // unreachable, slow or not OSV: allowed, and asked again next time
  }
}

function idsOf(answer: unknown): string[] {
  if (typeof answer !== "object" || answer === null || !("vulns" in answer) || !Array.isArray(answer.vulns)) return [];
  return answer.vulns.flatMap((one: unknown) =>
    typeof one === "object" && one !== null && "id" in one && typeof one.id === "string" ? [one.id] : [],
  );
}
