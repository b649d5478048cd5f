// To the clipboard and from it: the system's own program where there is one; texts also go out by the terminal's (OSC 52), which works over SSH.
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
      "The text is too long for the terminal's clipboard, and no clipboard program (wl-copy, xclip, xsel) is installed.",
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

// From the clipboard. Which program there is shows when it is started: never through a shell, and with limits of time and size.

type Held =
  | { readonly type: "picture"; readonly bytes: Buffer }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "nothing"; readonly why: string };

/** Which desktop this is, and where programs are. */
type Environment = Readonly<Record<string, string | undefined>>;

/** Null = the program is not there. */
type ClipboardReader = (output: Run) => Promise<Held | "empty" | null>;

/** What the program prints; null when it is not there or fails. Rejects when it comes to no end within the limits. */
type Run = (program: string, args: readonly string[]) => Promise<Buffer | null>;

const MAX_BYTES = 50 * 2 ** 20;
/** PowerShell takes seconds to begin. */
const TIME_MS = 10_000;
const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const TEXT_TYPES = ["text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "STRING", "TEXT"];

export async function readClipboard(environment: Environment): Promise<Held> {
  let isThere = false;
  for (const read of readers(environment)) {
    const held = await read((program, args) => output(program, args, environment));
    isThere ||= held !== null;
    if (held !== null && held !== "empty") return held;
  }
  if (isThere) return { type: "nothing", why: "The clipboard contains no picture or text." };
  const advice = {
    darwin: "pngpaste or osascript",
    win32: "PowerShell",
    linux: environment.WAYLAND_DISPLAY ? "wl-clipboard" : "xclip",
  }[process.platform as string];
  const remote = environment.SSH_CONNECTION ? " Over SSH: copy the file to this machine, then /image PATH." : "";
  return {
    type: "nothing",
    why: `The clipboard cannot be read: ${advice ?? "its program"} is not available. /image PATH attaches a file.${remote}`,
  };
}

function readers(environment: Environment): readonly ClipboardReader[] {
  if (process.platform === "darwin") return [fromMac];
  if (process.platform === "win32") return [fromWindows];
  return [
    ...(environment.WAYLAND_DISPLAY ? [fromWayland] : []),
    ...(environment.DISPLAY ? [fromX11] : []),
    ...(environment.WSL_DISTRO_NAME || environment.WSL_INTEROP ? [fromWindows] : []),
  ];
}

const fromWayland: ClipboardReader = async (output) => {
  const listed = await output("wl-paste", ["--list-types"]);
  if (listed === null) return null;
  return byType(listed.toString("utf8"), (type) => output("wl-paste", ["--no-newline", "--type", type]));
};

const fromX11: ClipboardReader = async (output) => {
  const get = (type: string) => output("xclip", ["-selection", "clipboard", "-o", "-t", type]);
  const listed = await get("TARGETS");
  if (listed !== null) return byType(listed.toString("utf8"), get);
  const text = await output("xsel", ["-ob"]);
  return text === null ? null : textHeld(text);
};

/** A picture before a text: who copies one from a page gets its address as well. */
async function byType(listed: string, get: (type: string) => Promise<Buffer | null>): Promise<Held | "empty"> {
  const offered = new Set(listed.split("\n").map((line) => line.trim()));
  const picture = TYPES.find((type) => offered.has(type));
  const bytes = picture === undefined ? null : await get(picture);
  if (bytes !== null && bytes.length > 0) return { type: "picture", bytes };
  const text = TEXT_TYPES.find((type) => offered.has(type));
  return textHeld((text === undefined ? null : await get(text)) ?? Buffer.alloc(0));
}

const fromMac: ClipboardReader = async (output) => {
  // A file copied in the Finder also offers its icon as a picture.
  const file = await output("osascript", ["-e", "POSIX path of (the clipboard as «class furl»)"]);
  if (file !== null && file.length > 0) return textHeld(Buffer.from(`${quotedPath(file.toString("utf8").trimEnd())} `));
  const png = await output("pngpaste", ["-"]);
  if (png !== null && png.length > 0) return { type: "picture", bytes: png };
  const hex = await output("osascript", ["-e", "the clipboard as «class PNGf»"]);
  const digits = /«data PNGf([0-9A-F]+)»/i.exec(hex?.toString("utf8") ?? "")?.[1];
  if (digits !== undefined) return { type: "picture", bytes: Buffer.from(digits, "hex") };
  const text = await output("pbpaste", []);
  return text === null ? null : textHeld(text);
};

const POWERSHELL = `
$ErrorActionPreference = 'Stop'
Add-Type -AssemblyName System.Windows.Forms, System.Drawing
$image = [Windows.Forms.Clipboard]::GetImage()
if ($image) {
  $bytes = New-Object IO.MemoryStream
  $image.Save($bytes, [Drawing.Imaging.ImageFormat]::Png)
  'png:' + [Convert]::ToBase64String($bytes.ToArray())
} else {
  'text:' + [Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes([Windows.Forms.Clipboard]::GetText()))
}`;

const fromWindows: ClipboardReader = async (output) => {
  const said = await output("powershell.exe", ["-NoProfile", "-NonInteractive", "-STA", "-Command", POWERSHELL]);
  const [, kind, base64 = ""] = /^(png|text):([A-Za-z0-9+/=]*)\s*$/.exec(said?.toString("latin1") ?? "") ?? [];
  if (kind === undefined) return null;
  const bytes = Buffer.from(base64, "base64");
  return kind === "png" ? { type: "picture", bytes } : textHeld(bytes);
};

const textHeld = (bytes: Buffer): Held | "empty" =>
  bytes.length === 0 ? "empty" : { type: "text", text: bytes.toString("utf8") };

const quotedPath = (path: string) => (path.includes("'") ? `"${path}"` : `'${path}'`);

function output(program: string, args: readonly string[], environment: Environment): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    // Not in the user's folder: a search path with relative entries would find programs of the project.
    const child = spawn(program, args, {
      cwd: "/",
      env: { ...environment },
      stdio: ["ignore", "pipe", "ignore"],
      windowsHide: true,
    });
    const pieces: Buffer[] = [];
    let size = 0;
    const giveUp = (why: string) => {
      clearTimeout(late);
      child.stdout.destroy();
      child.kill("SIGKILL");
      reject(new Error(why));
    };
    const late = setTimeout(() => giveUp(`The clipboard did not respond: ${program} timed out.`), TIME_MS);
    child.stdout.on("data", (piece: Buffer) => {
      pieces.push(piece);
      size += piece.length;
      if (size > MAX_BYTES) giveUp("The clipboard content is too large (limit: 50 MB).");
    });
    const end = (result: Buffer | null) => {
      clearTimeout(late);
      resolve(result);
    };
    child.on("error", () => end(null));
    child.on("close", (code) => end(code === 0 ? Buffer.concat(pieces) : null));
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
