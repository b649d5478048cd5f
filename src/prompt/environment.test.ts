import assert from "node:assert/strict";
import { test } from "node:test";
import { promptInputs as inputs } from "../../test/support/prompt-inputs.ts";
import { environmentHints } from "./blocks.ts";
import type { PromptInputs } from "./contract.ts";

const HOST = "Host: Linux (6.1)\nUser home directory: /home/ada";
const facts = { os: "Linux", kernel: "5.15", user: "root", home: "/root", cwd: "/workspace" };

const cases: readonly (readonly [name: string, change: Partial<PromptInputs>, expected: RegExp | string])[] = [
  ["local", {}, HOST],
  ["the user's own hint comes last, as it is", { environmentHint: "VPN is on." }, `${HOST}\n\nVPN is on.`],
  ["WSL", { hostName: "WSL (Windows Subsystem for Linux)", hostKind: "wsl" }, /^Host: WSL [\s\S]+\n\n.*\/mnt\/c/],
  [
    "Termux",
    { hostName: "Termux (Android)", hostKind: "termux" },
    /^Host: Termux [\s\S]+\n\n.*`pkg`.*systemd.*~\/storage/,
  ],
  [
    "Windows",
    { hostName: "Windows (11)", hostKind: "windows" },
    /host name is not [\s\S]+\n\n.*bash.*\/c\/Users\/.*PowerShell/,
  ],
  [
    "a sandbox",
    { backend: { type: "sandbox", writable: "/home/ada/project", network: "on" } },
    /\nTools run in a sandbox: only the working directory and \/tmp are writable, keys .* hidden, network on\..*outside=true and a reason\.$/,
  ],
  [
    "a sandbox with another writable folder and some hosts",
    {
      cwd: "/elsewhere",
      backend: { type: "sandbox", writable: "/home/ada/project", network: ["pypi.org", "*.npmjs.org"] },
    },
    /^Host: Linux .*\nUser home .*\n.*: only \/home\/ada\/project and \/tmp are writable.*network only to pypi\.org, \*\.npmjs\.org\./,
  ],
  [
    "a sandbox with nothing to write and no network",
    { backend: { type: "sandbox", writable: null, network: "off" } },
    /sandbox: only \/tmp is writable.*network off\./,
  ],
  [
    "a remote backend that was examined",
    { backend: { type: "remote", name: "docker", facts } },
    /^Terminal backend: docker\. .*not on the host.*:\n {2}OS: Linux 5\.15\n {2}User: root\n {2}Home: \/root\n {2}Working directory: \/workspace$/,
  ],
  [
    "a remote backend that could not be examined",
    { backend: { type: "remote", name: "ssh", facts: null } },
    /^Terminal backend: ssh\. [\s\S]*SSH[\s\S]*uname -a/,
  ],
  [
    "nothing of the host shows with a remote backend",
    { hostKind: "wsl", backend: { type: "remote", name: "modal", facts }, environmentHint: "Be quick." },
    /^(?!.*(?:Host:|\/mnt|ada))Terminal backend: modal[\s\S]+\n\nBe quick\.$/,
  ],
];
for (const [name, change, expected] of cases) {
  test(`environment hints: ${name}`, () => {
    const text = environmentHints({ ...inputs, ...change });
    if (typeof expected === "string") assert.equal(text, expected);
    else assert.match(text, expected);
  });
}
