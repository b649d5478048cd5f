// hermes config check: is the file sound, and what is missing?
import { versionOf } from "../../home/config/migrate.ts";
import { CONFIG_VERSION, configSchema } from "../../home/config/schema.ts";
import { allKeys } from "../../home/config/set-key.ts";
import { knownVariables } from "../../home/known-variables.ts";
import { didYouMean } from "../../kit/did-you-mean.ts";
import { type CliContext, ExitError } from "./context.ts";

const groupTitles = { model: "Model keys", tool: "Tool keys", chat: "Chat keys" } as const;

export function checkConfig({ home, io }: CliContext): void {
  const file = home.display(home.paths.configFile);
  const tree = home.configTree();
  const problem = home.configProblem;
  if (tree === null) {
    const place = problem ? ` at line ${problem.line}, column ${problem.column}: ${problem.message}` : "";
    throw new ExitError(1, `✗ ${file} is broken${place}\n  mend it with: hermes config edit`);
  }
  io.out(`${versionLine(tree, file)}\n`);

  const findings = home.configFindings();
  for (const { severity, message } of findings) io.out(`${severity === "error" ? "✗" : "⚠"} ${message}\n`);
  for (const line of unknownKeys(tree)) io.out(`⚠ ${line}\n`);
  if (findings.length === 0) io.out(`✓ No mistakes in ${file}\n`);

  for (const [group, title] of Object.entries(groupTitles)) {
    const known = knownVariables.filter((variable) => variable.group === group && variable.secret);
    const missing = known.filter(({ name }) => !home.env(name));
    const needed = group === "model" && missing.length === known.length;
    io.out(
      `\n${title}: ${known.length - missing.length} of ${known.length} set${needed ? "; at least one is needed for a model in the cloud" : ""}\n`,
    );
    for (const { name, meaning } of missing) io.out(`  ${name.padEnd(22)} ${meaning}\n`);
  }
  if (findings.some(({ severity }) => severity === "error")) throw new ExitError(1);
}

function versionLine(tree: Readonly<Record<string, unknown>>, file: string): string {
  if (Object.keys(tree).length === 0) return `✓ ${file} is empty or not there; the built-in defaults are used`;
  const version = versionOf(tree);
  if (version === CONFIG_VERSION) return `✓ ${file} is up to date (version ${version})`;
  if (version > CONFIG_VERSION)
    return `✓ ${file} was written by a newer program (version ${version}); it is read and left alone`;
  return `⚠ ${file} has version ${version}, the current one is ${CONFIG_VERSION}; run: hermes config migrate`;
}

/** Top-level names and keys of known sections that the schema does not have. They are kept, but nothing reads them. */
function unknownKeys(tree: Readonly<Record<string, unknown>>): string[] {
  const accepted = new Set([
    "_config_version",
    "provider",
    "base_url",
    "context_length",
    "api_base",
    "max_turns",
    "personalities",
    "fallback_model",
  ]);
  return Object.keys(tree).flatMap((key) => {
    if (accepted.has(key) || Object.hasOwn(configSchema.fields, key)) return [];
    const near = didYouMean(key, [...Object.keys(configSchema.fields), ...allKeys()]);
    return [`${key} is not a setting this program knows.${near.length > 0 ? ` Did you mean ${near.join(", ")}?` : ""}`];
  });
}
