// Whether config.yaml is sound. One examination for `hermes config check` and `hermes doctor`: what one of them warns of, the other does too.

import { isDeepStrictEqual } from "node:util";
import { type Finding as ConfigFinding, isMapping, normalise } from "../../home/config/decode.ts";
import { eachField, isSection, type Shape } from "../../home/config/field.ts";
import { versionOf } from "../../home/config/migrate.ts";
import { CONFIG_VERSION, configSchema } from "../../home/config/schema.ts";
import { allKeys } from "../../home/config/set-key.ts";
import { child } from "../../home/config/store.ts";
import { knownVariables } from "../../home/known-variables.ts";
import type { OpenHome } from "../../home/open.ts";
import { hermesCommand } from "../../home/paths.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { type CliContext, ExitError } from "../cli-context.ts";

/** One thing that was looked at. */
export interface Finding {
  readonly level: "ok" | "warn" | "error";
  readonly text: string;
  /** What to type or change. */
  readonly fix?: string | undefined;
  /** Does it, where that can harm nothing; resolves to what was done. */
  readonly repair?: (() => Promise<string>) | undefined;
}

export const MARKS = { ok: "✓", warn: "⚠", error: "✗" } as const;

/** The file itself: syntax, version, structure, values, names nobody knows, settings without effect. */
export function examineConfig(home: OpenHome): readonly Finding[] {
  const file = home.display(home.paths.configFile);
  const tree = home.configTree();
  if (tree === null) {
    const problem = home.configProblem;
    const place = problem ? ` at line ${problem.line}, column ${problem.column}: ${problem.message}` : "";
    return [{ level: "error", text: `${file} is broken${place}`, fix: hermesCommand("config edit") }];
  }
  const unread = home.unreadGuards();
  const mistakes = home.configFindings().map(({ severity, message }): Finding => {
    // Something that holds the agent back cannot be read, so nothing starts.
    const stops = unread.some((problem) => message.endsWith(problem));
    const fix = stops ? `no conversation starts until it is fixed: ${hermesCommand("config edit")}` : undefined;
    return { level: stops || severity === "error" ? "error" : "warn", text: message, fix };
  });
  const told = mistakes.map(({ text }) => text);
  const elsewhere = unread.filter((problem) => !told.some((text) => text.endsWith(problem)));
  const stopping = elsewhere.map(
    (text): Finding => ({
      level: "error",
      text,
      fix: `no conversation starts until it is fixed: ${hermesCommand("config edit")}`,
    }),
  );
  const unknown = unknownKeys(tree, home.configFindings());
  const found = [...mistakes, ...stopping, ...unknown];
  const idle = [
    ...idleKeys(tree),
    ...knownVariables.flatMap(({ name, notUsed }) => (notUsed && home.env(name) ? name : [])),
  ];
  return [
    versionFinding(tree, home),
    ...(found.length > 0 ? found : [{ level: "ok" as const, text: `No problems in ${file}` }]),
    ...(idle.length > 0
      ? [{ level: "warn" as const, text: `Set but not used yet (no effect): ${idle.join(", ")}` }]
      : []),
  ];
}

function versionFinding(tree: Readonly<Record<string, unknown>>, home: OpenHome): Finding {
  const file = home.display(home.paths.configFile);
  if (Object.keys(tree).length === 0)
    return { level: "ok", text: `${file} is empty or missing; using built-in defaults` };
  const version = versionOf(tree);
  if (version === CONFIG_VERSION) return { level: "ok", text: `${file} is up to date (version ${version})` };
  if (version > CONFIG_VERSION)
    return {
      level: "ok",
      text: `${file} was written by a newer Hermes (version ${version}); it is read but not changed`,
    };
  return {
    level: "warn",
    text: `${file} has version ${version}, the current one is ${CONFIG_VERSION}`,
    fix: hermesCommand("config migrate"),
    repair: async () => {
      const { to, changed } = await home.migrate();
      return [`${file} is now version ${to}`, ...changed].join("; ");
    },
  };
}

/** Names that the schema does not have, at the top and in its sections. They are kept, but nothing reads them. Each is told once. */
function unknownKeys(tree: Readonly<Record<string, unknown>>, findings: readonly ConfigFinding[]): Finding[] {
  const { _config_version, ...settings } = normalise(tree);
  const isTold = (key: string) => findings.some(({ message }) => message.startsWith(`${key}: `));
  const untold = unknownIn(configSchema.fields, settings, "").filter((key) => !isTold(key));
  return untold.map((key) => {
    const near = didYouMean(key, [...Object.keys(configSchema.fields), ...allKeys()]);
    const meant = near.length > 0 ? ` Did you mean ${near.join(", ")}?` : "";
    return {
      level: "warn",
      text: `${key} is not a known setting.${meant}`,
      fix: hermesCommand(`config unset ${key}`),
    };
  });
}

/** Changed settings that nothing reads yet. */
function idleKeys(tree: Readonly<Record<string, unknown>>): string[] {
  const settings = normalise(tree);
  return [...eachField(configSchema.fields)].flatMap(({ path, field }) => {
    const value = field.notUsed ? path.split(".").reduce<unknown>(child, settings) : undefined;
    return value === undefined || isDeepStrictEqual(value, field.fallback) ? [] : [path];
  });
}

function unknownIn(shape: Shape, tree: Readonly<Record<string, unknown>>, place: string): string[] {
  return Object.entries(tree).flatMap(([key, value]) => {
    const entry = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (entry === undefined) return [`${place}${key}`];
    return isSection(entry) && isMapping(value) ? unknownIn(entry.fields, value, `${place}${key}.`) : [];
  });
}

// hermes config check: the same, and which keys are missing.

const groupTitles = { model: "Model keys", tool: "Tool keys" } as const;

export function checkConfig({ home, io }: CliContext): void {
  const findings = examineConfig(home);
  const line = ({ level, text, fix }: Finding) => `${MARKS[level]} ${text}${fix ? `\n    → ${fix}` : ""}`;
  if (home.configTree() === null) throw new ExitError(1, findings.map(line).join("\n"));
  for (const finding of findings) io.out(`${line(finding)}\n`);
  for (const [group, title] of Object.entries(groupTitles)) {
    const known = knownVariables.filter((one) => one.group === group && one.secret && !one.notUsed);
    const missing = known.filter(({ name }) => !home.env(name));
    const needed = group === "model" && missing.length === known.length;
    io.out(
      `\n${title}: ${known.length - missing.length} of ${known.length} set${needed ? "; cloud models need at least one" : ""}\n`,
    );
    for (const { name, meaning } of missing) io.out(`  ${name.padEnd(22)} ${meaning}\n`);
  }
  const chats = knownVariables.filter(
    (one) => one.group === "chat" && one.secret && !one.notUsed && home.env(one.name),
  );
  const connect = chats.length === 0 ? `; connect a chat platform: ${hermesCommand("gateway setup")}` : "";
  io.out(`\nChat keys: ${chats.length} set${connect}\n`);
  if (findings.some(({ level }) => level === "error")) throw new ExitError(1);
}
