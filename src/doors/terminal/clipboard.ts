// To the clipboard: the system's own program where there is one, else the terminal's (OSC 52), which also works over SSH.
import { spawn } from "node:child_process";

const PROGRAMS: readonly (readonly [string, ...string[]])[] =
  process.platform === "darwin"
    ? [["pbcopy"]]
    : process.platform === "win32"
      ? [["clip"]]
      : [["wl-copy"], ["xclip", "-selection", "clipboard"], ["xsel", "-ib"]];

/** What terminals accept at most, encoded. */
const OSC52_LIMIT = 100_000;

export interface ClipboardFacts {
  /** The user sits at another machine: a program here would fill the wrong clipboard. */
  readonly remote: boolean;
  write(data: string): void;
}

/** Resolves to how it was done, in words for the user. Throws when it cannot be done. */
export async function copyText(text: string, facts: ClipboardFacts): Promise<string> {
  if (!facts.remote) for (const program of PROGRAMS) if (await pipeInto(program, text)) return `with ${program[0]}`;
  const encoded = Buffer.from(text, "utf8").toString("base64");
  if (encoded.length > OSC52_LIMIT) {
    throw new Error(
      "The text is too long for the terminal's clipboard, and no clipboard program (wl-copy, xclip, xsel) is there.",
    );
  }
  facts.write(`\u001b]52;c;${encoded}\u0007`);
  return "through the terminal";
}

function pipeInto([program, ...args]: readonly [string, ...string[]], text: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ["pipe", "ignore", "ignore"] });
    child.on("error", () => resolve(false));
    child.on("exit", (code) => resolve(code === 0));
    child.stdin.on("error", () => resolve(false));
    child.stdin.end(text);
  });
}
