import { join } from "node:path";

/** Every path below one home, computed on use. `root` is where profiles live; for the default profile it is `dir` itself. */
export interface HomePaths {
  readonly dir: string;
  readonly root: string;
  readonly profile: string;
  readonly configFile: string;
  readonly envFile: string;
  readonly stateDb: string;
  readonly soulFile: string;
  readonly memoriesDir: string;
  readonly skillsDir: string;
  readonly logsDir: string;
  readonly sessionsDir: string;
  readonly cacheDir: string;
  readonly pastesDir: string;
  readonly historyFile: string;
  readonly processesFile: string;
  /** For what has no name of its own yet. */
  at(...parts: string[]): string;
}

export function homePaths(dir: string, root: string, profile: string): HomePaths {
  const at = (...parts: string[]) => join(dir, ...parts);
  return {
    dir,
    root,
    profile,
    configFile: at("config.yaml"),
    envFile: at(".env"),
    stateDb: at("state.db"),
    soulFile: at("SOUL.md"),
    memoriesDir: at("memories"),
    skillsDir: at("skills"),
    logsDir: at("logs"),
    sessionsDir: at("sessions"),
    cacheDir: at("cache"),
    pastesDir: at("pastes"),
    historyFile: at(".hermes_history"),
    processesFile: at("processes.json"),
    at,
  };
}
