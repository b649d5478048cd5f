// To the clipboard: the system's own program where there is one, else the terminal's (OSC 52), which also works over SSH.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenHome } from "../../home/open.ts";
import { messageOf } from "../../kit/errors.ts";
import type { InputLine } from "./input-line.ts";

const PROGRAMS: readonly (readonly [string, ...string[]])[] =
  process.platform === "darwin"
    ? [["pbcopy"]]
    : process.platform === "win32"
      ? [["clip"]]
      : [["wl-copy"], ["xclip", "-selection", "clipboard"], ["xsel", "-ib"]];

/** What terminals accept at most, encoded. */
const OSC52_LIMIT = 100_000;

interface ClipboardFacts {
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

// The draft in the user's own editor.

/** Resolves to the edited text. The caller has given the terminal away and takes it back. */
async function editText(text: string, editor: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hermes-edit-"));
  const path = join(folder, "message.md");
  try {
    await writeFile(path, text, { mode: 0o600 });
    await run(editor, path);
    return (await readFile(path, "utf8")).replace(/\n$/, "");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The variable may hold options ("code --wait"), so a shell reads it. */
function run(editor: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child =
      process.platform === "win32"
        ? spawn(`${editor} "${path}"`, { shell: true, stdio: "inherit" })
        : spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", path], { stdio: "inherit" });
    child.on("error", reject);
    child.on("exit", (code) =>
      code === 0
        ? resolve()
        : reject(new Error(`The editor "${editor}" ended with code ${code}; the draft is unchanged.`)),
    );
  });
}

interface ComposeScreen {
  /** Gives the terminal to the editor, and takes it back. */
  release(): void;
  reclaim(): void;
  warn(text: string): void;
}

/** Opens the draft in the user's editor and puts back what was written there. */
export async function composeDraft(home: OpenHome, input: InputLine, screen: ComposeScreen): Promise<void> {
  const editor = home.env("VISUAL") || home.env("EDITOR") || (process.platform === "win32" ? "notepad" : "vi");
  const draft = await input.expanded();
  screen.release();
  try {
    input.draft = await editText(draft, editor);
  } catch (error) {
    screen.warn(messageOf(error));
  } finally {
    screen.reclaim();
  }
}
