import { access, constants, stat } from "node:fs/promises";
import { VERSION } from "../../../home/product.ts";
import { UserError } from "../../../kit/errors.ts";
import { openAuth } from "../../../llm/keys/auth-file.ts";
import type { CliContext } from "../context.ts";
import type { Finding } from "./finding.ts";

export async function checkEnvironment(_ctx: CliContext): Promise<readonly Finding[]> {
  const sqlite = process.versions.sqlite;
  return [
    { level: "ok", text: `Hermes ${VERSION}, Node ${process.versions.node} on ${process.platform} ${process.arch}` },
    sqlite
      ? { level: "ok", text: `SQLite ${sqlite}` }
      : { level: "error", text: "this Node has no SQLite", fix: "use an official build of Node 24 or newer" },
  ];
}

export async function checkHome(ctx: CliContext): Promise<readonly Finding[]> {
  const { paths } = ctx.home;
  const findings: Finding[] = [{ level: "ok", text: `${paths.dir} (profile ${paths.profile})` }];
  try {
    await access(paths.dir, constants.W_OK);
  } catch {
    findings.push({
      level: "error",
      text: `${paths.dir} cannot be written; nothing said will be kept`,
      fix: `make it yours: chown -R "$USER" ${paths.dir}, or choose another with HERMES_HOME`,
    });
  }
  if (await isLoose(paths.envFile)) {
    findings.push({
      level: "warn",
      text: `${paths.envFile} can be read by others, and it holds your keys`,
      fix: `chmod 600 ${paths.envFile}`,
    });
  }
  const broken = await openAuth(ctx.home).then(
    () => null,
    (error: unknown) => error,
  );
  if (broken instanceof UserError) findings.push({ level: "error", text: broken.message });
  return findings;
}

export async function checkConfiguration(ctx: CliContext): Promise<readonly Finding[]> {
  const { home } = ctx;
  if (home.warnings.length === 0) return [{ level: "ok", text: `${home.paths.configFile} is fine` }];
  return home.warnings.map((text): Finding => ({ level: home.configBroken ? "error" : "warn", text }));
}

async function isLoose(path: string): Promise<boolean> {
  try {
    return process.platform !== "win32" && ((await stat(path)).mode & 0o077) !== 0;
  } catch {
    return false; // there is no such file, so there is nothing to read
  }
}
