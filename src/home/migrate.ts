// Runs the migration of a home: config.yaml, .env, directories.
import { copyFileSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { type MigrationPlan, type MigrationResult, planMigration, versionOf } from "./config/migrate.ts";
import { CONFIG_VERSION } from "./config/schema.ts";
import { type ConfigStore, stampName } from "./config/store.ts";
import type { HomeEnvironment } from "./environment.ts";
import { ConfigError } from "./errors.ts";
import { type Managed, refusal } from "./managed.ts";
import type { HomePaths } from "./paths.ts";

export interface MigrationParts {
  readonly paths: HomePaths;
  readonly config: ConfigStore;
  readonly environment: HomeEnvironment;
  readonly managed: Managed | null;
  readonly now: () => Date;
}

export async function migrateHome(parts: MigrationParts): Promise<MigrationResult> {
  const { paths, config, environment } = parts;
  const tree = config.tree();
  if (tree === null || !existsSync(paths.configFile)) {
    return { from: CONFIG_VERSION, to: CONFIG_VERSION, changed: [], warnings: [], envRemoved: [] };
  }
  const from = versionOf(tree);
  if (from >= CONFIG_VERSION) return { from, to: from, changed: [], warnings: [], envRemoved: [] };
  if (parts.managed) throw new ConfigError(refusal(parts.managed, paths.configFile));

  const facts = { env: environment.get, plugins: installedPlugins(paths.at("plugins")) };
  let plan: MigrationPlan = planMigration(tree, facts);
  await config.update(
    (current) => {
      plan = planMigration(current, facts); // another process may have been faster
      return plan.changes;
    },
    { backup: true },
  );
  const envRemoved = await removeObsolete(plan.obsoleteEnv, parts);
  mkdirSync(paths.at("logs", "curator"), { recursive: true, mode: 0o700 });
  const changed = [...plan.notes, ...envRemoved.map((name) => `${name} removed from .env: it has no meaning any more`)];
  return { from: plan.from, to: plan.to, changed, warnings: plan.warnings, envRemoved };
}

async function removeObsolete(
  names: readonly string[],
  { paths, environment, now }: MigrationParts,
): Promise<string[]> {
  const present = names.filter((name) => environment.fromFile(name) !== undefined);
  if (present.length === 0) return [];
  copyFileSync(paths.envFile, `${paths.envFile}.bak.${stampName(now())}`);
  for (const name of present) await environment.remove(name);
  return present;
}

function installedPlugins(dir: string): string[] {
  if (!existsSync(dir)) return [];
  const folders = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders
    .map((entry) => entry.name)
    .filter((name) => existsSync(`${dir}/${name}/plugin.yaml`))
    .sort();
}
