// What the doctor looks at in the home: folders and who may read them, identity, memory, keys, settings, database, profiles.

import { access, chmod, constants, mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { hermesCommand, installRoot, runsFromSource, VERSION } from "../../home/paths.ts";
import { listProfileNames, orphanWrappers, removeWrapper, type WrapperContext } from "../../home/profile-manage.ts";
import { codeOf, UserError } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import { openAuth } from "../../llm/keys/pool.ts";
import { FILE_NAMES, lengthOf, parseEntries, TARGETS } from "../../memory/entries.ts";
import { StoreError } from "../../sessions/store.ts";
import type { CliContext } from "../cli-context.ts";
import { examineConfig, type Finding } from "./config-check.ts";

export async function checkEnvironment({ home }: CliContext): Promise<readonly Finding[]> {
  const { sqlite, node } = process.versions;
  const from = `${runsFromSource() ? "source" : "build"} in ${home.display(installRoot())}`;
  return [
    { level: "ok", text: `Hermes ${VERSION} (${from}), Node ${node} on ${process.platform} ${process.arch}` },
    sqlite
      ? { level: "ok", text: `SQLite ${sqlite}` }
      : {
          level: "error",
          text: "this Node was built without SQLite",
          fix: "use an official build of Node 24 or newer",
        },
  ];
}

/** Folders that everything else relies on. */
const FOLDERS = ["sessions", "logs", "memories", "skills"];
const SECRET_FILES = [".env", "config.yaml", "auth.json"];

export async function checkHome(ctx: CliContext): Promise<readonly Finding[]> {
  const { home } = ctx;
  const { paths } = home;
  const findings: Finding[] = [{ level: "ok", text: `${paths.dir} (profile ${paths.profile})` }];
  try {
    await access(paths.dir, constants.W_OK);
  } catch {
    findings.push({
      level: "error",
      text: `${paths.dir} is not writable; conversations will not be saved`,
      fix: `take ownership: chown -R "$USER" ${paths.dir}, or choose another with HERMES_HOME`,
    });
  }
  for (const name of FOLDERS) findings.push(...(await checkFolder(paths.at(name), ctx)));
  findings.push(...(await checkMode(paths.dir, 0o700, "the home is readable by others", ctx)));
  for (const name of SECRET_FILES)
    findings.push(
      ...(await checkMode(paths.at(name), 0o600, `${name} is readable by others and may contain keys`, ctx)),
    );
  const broken = await openAuth(home).then(
    () => null,
    (error: unknown) => error,
  );
  if (broken instanceof UserError) findings.push({ level: "error", text: broken.message });
  return findings;
}

async function checkFolder(path: string, { home }: CliContext): Promise<Finding[]> {
  const facts = await stat(path).catch(() => null);
  if (facts?.isDirectory()) return [];
  const shown = home.display(path);
  if (facts)
    return [
      { level: "error", text: `${shown} is a file, but must be a folder`, fix: `rename it: mv ${shown} ${shown}.old` },
    ];
  const make = async () => {
    await mkdir(path, { recursive: true, mode: 0o700 });
    return `created ${shown}`;
  };
  return [
    { level: "warn", text: `${shown} is missing`, fix: `mkdir -p ${shown}`, repair: home.managed ? undefined : make },
  ];
}

async function checkMode(path: string, mode: number, text: string, { home }: CliContext): Promise<Finding[]> {
  const facts = await stat(path).catch(() => null);
  if (!facts || process.platform === "win32" || (facts.mode & 0o077) === 0) return [];
  const octal = mode.toString(8);
  const tighten = async () => {
    await chmod(path, mode);
    return `${home.display(path)} is readable by you only`;
  };
  const fix = `chmod ${octal} ${home.display(path)}`;
  return [{ level: "warn", text: `${home.display(path)}: ${text}`, fix, repair: home.managed ? undefined : tighten }];
}

// What the agent is and remembers.

export async function checkKnowledge(ctx: CliContext): Promise<readonly Finding[]> {
  const { home } = ctx;
  const { memory } = home.config();
  const soul = await readOrNull(home.paths.soulFile);
  const file = home.display(home.paths.soulFile);
  const identity: Finding =
    soul === null
      ? {
          level: "warn",
          text: `${file} is missing; using the built-in identity`,
          fix: "it is created on the next start",
        }
      : soul.trim() === ""
        ? {
            level: "warn",
            text: `${file} is empty; using the built-in identity`,
            fix: `describe the agent in ${file}`,
          }
        : { level: "ok", text: `${file}, ${plural([...soul].length, "character")}` };
  const limits = { memory: memory.memory_char_limit, user: memory.user_char_limit };
  const memories = await Promise.all(
    TARGETS.map(async (target): Promise<Finding> => {
      const path = join(home.paths.memoriesDir, FILE_NAMES[target]);
      const entries = parseEntries((await readOrNull(path)) ?? "");
      const used = lengthOf(entries);
      const facts = `${FILE_NAMES[target]}: ${entries.length === 1 ? "1 entry" : `${entries.length} entries`}, ${used} of ${limits[target]} characters`;
      if (used <= limits[target]) return { level: "ok", text: facts };
      const fix = `shorten it: ${hermesCommand("memory show")}, ${hermesCommand("memory remove")}; or raise memory.${target}_char_limit`;
      return { level: "warn", text: `${facts}: the agent cannot add to it`, fix };
    }),
  );
  return [identity, ...memories];
}

async function readOrNull(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

// Settings, database, profiles.

export async function checkConfiguration({ home }: CliContext): Promise<readonly Finding[]> {
  const findings = examineConfig(home);
  // Warnings of the start that are not about the file: a profile that is gone, keys with odd letters.
  const told = (warning: string) => findings.some(({ text }) => warning.endsWith(text) || text.endsWith(warning));
  const others = home.warnings.filter((warning) => !told(warning) && !(home.configBroken && /is broken/.test(warning)));
  return [...findings, ...others.map((text): Finding => ({ level: "warn", text }))];
}

const LARGE_WAL = 64 * 1024 * 1024;

export async function checkStore(ctx: CliContext): Promise<readonly Finding[]> {
  try {
    const store = await ctx.store();
    const [health, stats] = await Promise.all([store.health(), store.stats()]);
    const wal = (await stat(`${ctx.home.paths.stateDb}-wal`).catch(() => null))?.size ?? 0;
    const facts: Finding = {
      level: "ok",
      text: `${plural(stats.sessions, "session")}, ${plural(stats.messages, "message")}, ${(stats.sizeBytes / 1e6).toFixed(1)} MB`,
    };
    const large: Finding = {
      level: "warn",
      text: `the write-ahead log of state.db is ${(wal / 1e6).toFixed(0)} MB`,
      fix: "quit other hermes processes; the last one to exit checkpoints it",
    };
    return [
      facts,
      ...health.map(({ ok, text, fix }): Finding => ({ level: ok ? "ok" : "error", text, fix })),
      ...(wal > LARGE_WAL ? [large] : []),
    ];
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const fix =
      error.code === "busy"
        ? "wait for the other hermes process to finish, or stop it"
        : `"${hermesCommand("sessions repair --check-only")}" checks the file; it deletes nothing`;
    return [{ level: "error", text: error.message, fix }];
  }
}

export async function checkProfiles({ home }: CliContext): Promise<readonly Finding[]> {
  const names = await listProfileNames(home.paths.root);
  const context: WrapperContext = { osHome: home.osHome, path: home.environment().PATH ?? "" };
  const orphans = await orphanWrappers(home.paths.root, context);
  return [
    { level: "ok", text: `${plural(names.length, "profile")}: ${names.join(", ")}` },
    ...orphans.map(
      ({ alias, profile, path }): Finding => ({
        level: "warn",
        text: `${home.display(path)} starts the profile "${profile}", which does not exist`,
        fix: `rm ${home.display(path)}`,
        repair: async () => {
          await removeWrapper(profile, alias, context);
          return `removed ${home.display(path)}`;
        },
      }),
    ),
  ];
}
