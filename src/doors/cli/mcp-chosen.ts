// The server a command is about, and the user's consent to start it.
import { homedir } from "node:os";
import { commandLine, judgeLaunch } from "../../mcp/launch-check.ts";
import { parseServer, type ServerSettings } from "../../mcp/settings.ts";
import { type CliContext, ExitError } from "../cli-context.ts";

/** The settings of a server; ends the command when there is none or it cannot be used. */
export function requireServer(name: string, { home, io }: CliContext): ServerSettings {
  const servers = home.config().mcp_servers;
  if (!Object.hasOwn(servers, name)) {
    const known = Object.keys(servers);
    throw new ExitError(
      1,
      `There is no MCP server "${name}". ${known.length > 0 ? `Configured: ${known.join(", ")}` : "None configured."}`,
    );
  }
  const { settings, problems } = parseServer(name, servers[name]);
  if (!settings) throw new ExitError(1, problems.join("\n"));
  for (const problem of problems) io.err(`⚠ ${problem}\n`);
  return settings;
}

/** A command the policy asks about is asked about once, at a terminal; the yes is kept for exactly this command line. */
export async function requireConsent({ name, endpoint }: ServerSettings, { home, io }: CliContext): Promise<void> {
  if (endpoint.type !== "stdio") return;
  const line = commandLine(endpoint);
  const config = home.config();
  const verdict = judgeLaunch(line, {
    config,
    home: home.paths.dir,
    osHome: home.environment().HOME ?? homedir(),
    sudoPasswordSet: home.env("SUDO_PASSWORD") !== undefined,
    yolo: false,
  });
  if (verdict.type === "allow") return;
  const shown = home.redact(line);
  if (verdict.type === "block")
    throw new ExitError(1, `The command policy forbids ${shown}: ${verdict.reason}. Nothing was started.`);
  const answer = await io.question(
    `${shown}\n${verdict.reason} (${verdict.category}). Start it as MCP server "${name}" from now on? [y/N] `,
  );
  if (answer === null) {
    throw new ExitError(
      1,
      `${shown}: ${verdict.reason} (${verdict.category}). Confirm it at a terminal, or add the command line to command_allowlist in config.yaml. Nothing was started.`,
    );
  }
  if (!/^y(?:es)?$/i.test(answer.trim())) throw new ExitError(1, "Nothing was started.");
  await home.setConfigKey("command_allowlist", [...config.command_allowlist, line]);
}
