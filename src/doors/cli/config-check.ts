// hermes config check: is the file sound, and what is missing?
import { isMapping } from "../../home/config/decode.ts";
import { isSection, type Shape } from "../../home/config/field.ts";
import { versionOf } from "../../home/config/migrate.ts";
import { normalise } from "../../home/config/normalise.ts";
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
  const unknown = unknownKeys(tree);
  for (const line of unknown) io.out(`⚠ ${line}\n`);
  if (findings.length + unknown.length === 0) io.out(`✓ No mistakes in ${file}\n`);

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

/** Names that the schema does not have, at the top and in its sections. They are kept, but nothing reads them. */
function unknownKeys(tree: Readonly<Record<string, unknown>>): string[] {
  const { _config_version, ...settings } = normalise(tree);
  return unknownIn(configSchema.fields, settings, "").map((key) => {
    const near = didYouMean(key, [...Object.keys(configSchema.fields), ...allKeys()]);
    return `${key} is not a setting this program knows.${near.length > 0 ? ` Did you mean ${near.join(", ")}?` : ""}`;
  });
}

function unknownIn(shape: Shape, tree: Readonly<Record<string, unknown>>, place: string): string[] {
  return Object.entries(tree).flatMap(([key, value]) => {
    const entry = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (entry === undefined) return [`${place}${key}`];
    return isSection(entry) && isMapping(value) ? unknownIn(entry.fields, value, `${place}${key}.`) : [];
  });
}
