// Older layouts of config.yaml, updated step by step. A step touches only what it names, and nothing when that is absent.
import { isMapping } from "./decode.ts";
import { CONFIG_VERSION } from "./schema.ts";
import { changeTree, type YamlChange } from "./yaml-edit.ts";
import type { Tree } from "./yaml-text.ts";

export interface MigrationResult {
  readonly from: number;
  readonly to: number;
  /** One line per change, for the user. */
  readonly changed: readonly string[];
  readonly warnings: readonly string[];
  readonly envRemoved: readonly string[];
}

interface MigrationFacts {
  readonly env: (name: string) => string | undefined;
  /** Plugins installed in the home. */
  readonly plugins: readonly string[];
}

export interface MigrationPlan {
  readonly from: number;
  readonly to: number;
  readonly changes: readonly YamlChange[];
  readonly notes: readonly string[];
  readonly warnings: readonly string[];
  /** Variables that have no meaning any more. */
  readonly obsoleteEnv: readonly string[];
}

/** What has to be done to a file; nothing when it is current or from a newer program. */
export function planMigration(tree: Tree, facts: MigrationFacts): MigrationPlan {
  const from = versionOf(tree);
  if (from >= CONFIG_VERSION) return { from, to: from, changes: [], notes: [], warnings: [], obsoleteEnv: [] };
  const draft = new Draft(tree);
  for (const step of steps) if (from < step.to) step.run(draft, facts);
  draft.set(["_config_version"], CONFIG_VERSION);
  return {
    from,
    to: CONFIG_VERSION,
    changes: draft.changes,
    notes: draft.notes,
    warnings: draft.warnings,
    obsoleteEnv: draft.obsoleteEnv,
  };
}

export function versionOf(tree: Tree): number {
  const version = tree._config_version;
  return typeof version === "number" && Number.isInteger(version) && version > 0 ? version : 0;
}

class Draft {
  tree: Tree;
  readonly changes: YamlChange[] = [];
  readonly notes: string[] = [];
  readonly warnings: string[] = [];
  readonly obsoleteEnv: string[] = [];

  constructor(tree: Tree) {
    this.tree = tree;
  }

  get(...path: string[]): unknown {
    return path.reduce<unknown>((node, key) => (isMapping(node) ? node[key] : undefined), this.tree);
  }

  set(path: readonly string[], value: unknown, note?: string): void {
    this.#apply({ type: "set", path, value }, note);
  }

  remove(path: readonly string[], note?: string): void {
    this.#apply({ type: "remove", path }, note);
  }

  #apply(change: YamlChange, note: string | undefined): void {
    this.changes.push(change);
    this.tree = changeTree(this.tree, change);
    if (note !== undefined) this.notes.push(note);
  }
}

interface Step {
  readonly to: number;
  run(draft: Draft, facts: MigrationFacts): void;
}

const steps: readonly Step[] = [
  { to: 4, run: toolProgressFromEnv },
  {
    to: 5,
    run(draft, { env }) {
      if (draft.get("timezone") !== undefined) return;
      draft.set(["timezone"], env("HERMES_TIMEZONE") ?? "", "timezone added");
    },
  },
  { to: 9, run: (draft) => void draft.obsoleteEnv.push("ANTHROPIC_TOKEN") },
  { to: 12, run: customProvidersToProviders },
  { to: 13, run: (draft) => void draft.obsoleteEnv.push("LLM_MODEL", "OPENAI_MODEL") },
  { to: 14, run: speechModelToProvider },
  {
    to: 15,
    run(draft) {
      if (draft.get("display", "interim_assistant_messages") !== undefined) return;
      draft.set(["display", "interim_assistant_messages"], true, "display.interim_assistant_messages enabled");
    },
  },
  { to: 16, run: toolProgressPerPlatform },
  { to: 17, run: summaryModelToAuxiliary },
  { to: 21, run: pluginsBecomeOptIn },
];

function toolProgressFromEnv(draft: Draft, { env }: MigrationFacts): void {
  if (draft.get("display", "tool_progress") !== undefined) return;
  const off = /^(?:false|0|no)$/i.test(env("HERMES_TOOL_PROGRESS") ?? "");
  const mode = env("HERMES_TOOL_PROGRESS_MODE")?.toLowerCase();
  const value = off ? "off" : mode === "new" || mode === "all" ? mode : null;
  if (value)
    draft.set(["display", "tool_progress"], value, `display.tool_progress set to ${value}, from the environment`);
}

function customProvidersToProviders(draft: Draft): void {
  const old = draft.get("custom_providers");
  if (!Array.isArray(old)) return;
  for (const item of old) {
    if (!isMapping(item) || typeof item.base_url !== "string" || item.base_url === "") {
      draft.warnings.push("a custom_providers entry without base_url was dropped");
      continue;
    }
    const key = providerKey(item.name, item.base_url);
    if (draft.get("providers", key) !== undefined) {
      draft.warnings.push(`providers.${key} already exists; the custom_providers entry with that name was dropped`);
      continue;
    }
    const entry: Tree = { api: item.base_url };
    if (item.name) entry.name = item.name;
    if (typeof item.api_key === "string" && !/^(?:no[-_ ]?key.*|none|null|n\/a|)$/i.test(item.api_key))
      entry.api_key = item.api_key;
    if (item.model) entry.default_model = item.model;
    if (item.api_mode) entry.transport = item.api_mode;
    draft.set(["providers", key], entry, `custom_providers entry moved to providers.${key}`);
  }
  draft.remove(["custom_providers"]);
}

function providerKey(name: unknown, baseUrl: string): string {
  const kebab = (text: string) =>
    text
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-|-$/g, "");
  const fromName = typeof name === "string" ? kebab(name) : "";
  return fromName || kebab(URL.parse(baseUrl)?.hostname ?? baseUrl) || "custom";
}

const whisperSize = /^(?:(?:tiny|base|small|medium)(?:\.en)?|large(?:-v[123]|-v3-turbo)?|turbo|distil-.+)$/;

function speechModelToProvider(draft: Draft): void {
  const model = draft.get("stt", "model");
  if (typeof model !== "string") return;
  const given = draft.get("stt", "provider");
  const provider = typeof given === "string" && given !== "" ? given : "local";
  const fits = provider !== "local" || whisperSize.test(model);
  const free = draft.get("stt", provider, "model") === undefined;
  if (model !== "" && fits && free) draft.set(["stt", provider, "model"], model);
  draft.remove(
    ["stt", "model"],
    fits ? `stt.model moved to stt.${provider}.model` : `stt.model ${model} dropped: not a local model`,
  );
}

function toolProgressPerPlatform(draft: Draft): void {
  const overrides = draft.get("display", "tool_progress_overrides");
  if (!isMapping(overrides)) return;
  for (const [platform, value] of Object.entries(overrides)) {
    const path = ["display", "platforms", platform, "tool_progress"];
    if (draft.get(...path) === undefined)
      draft.set(path, value, `display.tool_progress_overrides.${platform} copied to ${path.join(".")}`);
  }
}

function summaryModelToAuxiliary(draft: Draft): void {
  for (const key of ["model", "provider", "base_url"]) {
    const old = ["compression", `summary_${key}`];
    const value = draft.get(...old);
    if (value === undefined) continue;
    const path = ["auxiliary", "compression", key];
    const free = draft.get(...path) === undefined || draft.get(...path) === "" || draft.get(...path) === "auto";
    const moved = value !== null && value !== "" && value !== "auto" && free;
    if (moved) draft.set(path, value);
    draft.remove(old, moved ? `${old.join(".")} moved to ${path.join(".")}` : `${old.join(".")} removed`);
  }
}

function pluginsBecomeOptIn(draft: Draft, { plugins }: MigrationFacts): void {
  if (draft.get("plugins", "enabled") !== undefined || plugins.length === 0) return;
  const disabled = draft.get("plugins", "disabled");
  const enabled = plugins.filter((name) => !(Array.isArray(disabled) && disabled.includes(name)));
  draft.set(
    ["plugins", "enabled"],
    enabled,
    `plugins.enabled set to what is installed: ${enabled.join(", ") || "none"}`,
  );
}
