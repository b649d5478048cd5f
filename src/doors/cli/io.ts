// The process's streams as sub-commands see them.
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { stopForGoneReader } from "../stop-signals.ts";
import type { CliIo } from "./context.ts";

export function processIo(options: { readonly noColor: boolean }): CliIo {
  const { stdin, stdout, stderr } = process;
  // A reader that has seen enough (`| head`) is no error. A turn that runs is ended first: its last call is booked, its answer stored.
  let stopping = false;
  for (const stream of [stdout, stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      stopping ||= stopForGoneReader();
      if (!stopping) process.exit();
    });
  }
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    stdin,
    stdinIsTerminal: stdin.isTTY === true,
    stdoutIsTerminal: stdout.isTTY === true,
    stderrIsTerminal: stderr.isTTY === true,
    color: stdout.isTTY === true && !options.noColor,
    columns: stdout.columns ?? 80,
    question: (prompt) => ask(prompt, stderr),
    async secret(prompt) {
      stderr.write(prompt);
      const typed = await ask("", new Writable({ write: (_chunk, _encoding, done) => done() }));
      stderr.write("\n");
      return typed;
    },
  };
}

async function ask(prompt: string, output: NodeJS.WritableStream): Promise<string | null> {
  if (!process.stdin.isTTY) return null;
  const reader = createInterface({ input: process.stdin, output, terminal: true });
  try {
    return await new Promise<string | null>((resolve) => {
      reader.once("close", () => resolve(null));
      reader.once("SIGINT", () => {
        resolve(null);
        // The line editor has swallowed the key: whoever listens to the signal, or the shell, hears of it all the same.
        process.kill(process.pid, "SIGINT");
      });
      reader.question(prompt).then(resolve, () => resolve(null));
    });
  } finally {
    reader.close();
  }
}

export async function readAll(stdin: NodeJS.ReadStream): Promise<string> {
  let text = "";
  stdin.setEncoding("utf8");
  for await (const chunk of stdin) text += chunk;
  return text;
}

export async function readAllBytes(stdin: NodeJS.ReadStream): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
