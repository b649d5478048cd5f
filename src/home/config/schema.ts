// The one schema of config.yaml: keys, kinds, defaults, meaning. It feeds defaults, validation, `hermes config`, did-you-mean and
// the generated reference. Unknown keys are kept.
import { decode, type Misfit } from "./decode.ts";
import { section, type Values } from "./field.ts";
import { agentSections } from "./sections/agent.ts";
import { doorSections } from "./sections/doors.ts";
import { modelSections } from "./sections/model.ts";
import { toolSections } from "./sections/tools.ts";

const root = section("config.yaml", { ...modelSections, ...agentSections, ...toolSections, ...doorSections });

export const configSchema = {
  ...root,
  /** Settings from a normalised tree, defaults filled in; what does not fit is replaced by its default. */
  parse: (tree: object): Config => decodeConfig({ ...tree }).config,
};

/** The configuration as the program uses it: defaults filled in, normalised, environment expanded. */
export type Config = Values<typeof root.fields>;

/** Version of the key layout this program writes; a file with a higher one is read and left alone. */
export const CONFIG_VERSION = 24;

/** The settings of a home that we make. One that is there already keeps what it has. */
export const NEW_CONFIG = `_config_version: ${CONFIG_VERSION}\nterminal:\n  sandbox: auto\n`;

/** Exactly the built-in defaults; a fresh copy each time. */
export function defaultConfig(): Config {
  return decodeConfig({}).config;
}

/** Settings from a normalised tree: what does not fit the schema falls back to its default and is reported in `problems`. */
export function decodeConfig(tree: Readonly<Record<string, unknown>>): { config: Config; problems: Misfit[] } {
  const problems: Misfit[] = [];
  const config = decode(root, tree, "", problems) as Config; // `decode` fills in every key of the schema
  return { config, problems };
}
