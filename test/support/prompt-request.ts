// A request for a prompt over a folder of files: `home/` is the user's, `home/.hermes` the program's, `w/` the project.
import { join } from "node:path";
import { defaultConfig } from "../../src/home/config/schema.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { PromptPorts, PromptRequest } from "../../src/prompt/gather.ts";
import { programRunner } from "../../src/prompt/ports.ts";
import { scanForThreats } from "../../src/safety/threats/scan.ts";
import { localFiles } from "../../src/tools/files/access.ts";
import { DEFAULT_TOOLS, promptInputs, someSkills } from "./prompt-inputs.ts";

export function promptRequest(root: string): { readonly request: PromptRequest; readonly ports: PromptPorts } {
  const { model, provider, platform, profile, rootHome, profileHome, startedOn, rebuiltOn } = promptInputs;
  return {
    request: {
      known: {
        ...{ model, provider, platform, profile, rootHome, profileHome, startedOn, rebuiltOn },
        ...{ toolNames: DEFAULT_TOOLS, userHome: join(root, "home"), cwd: join(root, "w") },
        ...{ systemMessage: null, memoryText: null, userText: null, sessionId: null },
      },
      settings: defaultConfig(),
      tempDir: "/tmp",
      soulPath: join(root, "home", ".hermes", "SOUL.md"),
      contextLength: 200_000,
      skipContextFiles: false,
      loadSoulIdentity: false,
      host: { platform: "linux", type: "Linux", release: "6.1", env: () => undefined },
    },
    ports: {
      files: localFiles,
      isDenied: async () => false,
      run: programRunner({ PATH: process.env.PATH, HOME: root, GIT_CONFIG_NOSYSTEM: "1" }),
      scan: (text) => scanForThreats(text, "context"),
      clock: systemClock,
      skills: async () => ({ categories: someSkills(10), warnings: [] }),
    },
  };
}
