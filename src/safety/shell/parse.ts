// Reads a command line into pipelines of commands. One pass, never throws: what it cannot make sense of sets `ok` to false, and
// the words around it are still kept as commands, so that a caller who looks for trouble sees too much rather than too little.
import { findArithmeticEnd } from "./arithmetic.ts";
import type { Command, Joiner, ParsedLine, Pipeline, Script, Word } from "./ast.ts";
import { emptyCommand, readCommand } from "./command.ts";
import { takeNewline } from "./heredoc.ts";
import { atReserved, descend, type Reader, type ScriptEnd, skipBlanks } from "./reader.ts";
import { readWord } from "./word.ts";

export function parseCommandLine(text: string): ParsedLine {
  const comments: { start: number; end: number }[] = [];
  const reader: Reader = { text, at: 0, ok: true, tooDeep: false, depth: 0, pending: [], parseScript, comments };
  const script = parseScript(reader, "end");
  if (reader.pending.length > 0) {
    for (const heredoc of reader.pending) heredoc.fill({ body: "", parts: [], doubtful: true });
  }
  return { script, ok: reader.ok, tooDeep: reader.tooDeep, comments };
}

function parseScript(reader: Reader, end: ScriptEnd): Script {
  const pipelines: Pipeline[] = [];
  for (;;) {
    skipBlanks(reader);
    const char = reader.text[reader.at];
    if (char === undefined) break;
    if (char === "\n") takeNewline(reader);
    else if (char === ")" && end === ")") break;
    else if (end === "}" && atReserved(reader, "}")) break;
    else if (end === "case" && (isCaseEnd(reader) || atReserved(reader, "esac"))) break;
    else if (char === ")" || char === "|" || char === ";" || (char === "&" && reader.text[reader.at + 1] !== ">")) {
      reader.ok = false;
      reader.at++;
    } else pipelines.push(parsePipeline(reader));
  }
  return { pipelines };
}

const isCaseEnd = (reader: Reader) =>
  reader.text[reader.at] === ";" && (reader.text[reader.at + 1] === ";" || reader.text[reader.at + 1] === "&");

function parsePipeline(reader: Reader): Pipeline {
  const start = reader.at;
  const commands: Command[] = [parseCommand(reader)];
  let end = reader.at;
  for (;;) {
    skipBlanks(reader);
    if (reader.text[reader.at] !== "|" || reader.text[reader.at + 1] === "|") break;
    reader.at += reader.text[reader.at + 1] === "&" ? 2 : 1;
    skipNewlines(reader);
    commands.push(parseCommand(reader));
    end = reader.at;
  }
  const joinerStart = reader.at;
  return { commands, start, end, joinerStart, joiner: takeJoiner(reader) };
}

function takeJoiner(reader: Reader): Joiner {
  const { text, at } = reader;
  const two = text.slice(at, at + 2);
  if (two === "&&" || two === "||") {
    reader.at += 2;
    return two;
  }
  const char = text[at];
  if (char === "\n") {
    takeNewline(reader);
    return "\n";
  }
  if ((char === ";" && !isCaseEnd(reader)) || char === "&") {
    reader.at++;
    return char;
  }
  return "";
}

function skipNewlines(reader: Reader): void {
  skipBlanks(reader);
  while (reader.text[reader.at] === "\n") {
    takeNewline(reader);
    skipBlanks(reader);
  }
}

function parseCommand(reader: Reader): Command {
  return descend(reader, emptyCommand(reader.at), () =>
    readCommand(reader, { parseScript, skipNewlines, readArithmetic }),
  );
}

/** `((...))` as a command; null when it does not close as arithmetic. */
function readArithmetic(reader: Reader): Word | null {
  if (!reader.text.startsWith("((", reader.at)) return null;
  const end = findArithmeticEnd(reader.text, reader.at + 2, "))");
  if (end < 0) return null;
  const start = reader.at;
  // Read as the word `$((...))` would be, so that substitutions inside are seen.
  const inner: Reader = {
    ...reader,
    text: `$${reader.text.slice(start, end)}`,
    at: 0,
    pending: [],
    comments: undefined,
  };
  const word = readWord(inner);
  if (!inner.ok) reader.ok = false;
  if (inner.tooDeep) reader.tooDeep = true;
  reader.at = end;
  return { parts: word.parts, start, end };
}
