// Turns a command line into the programs it would run, wherever they hide: behind sudo, in substitutions, in `-c` texts.

import { matchGlob } from "../paths.ts";
import {
  type Command,
  createScope,
  type Group,
  type Position,
  type Redirection,
  type Scope,
  type Script,
  type SimpleCommand,
  UNKNOWN,
  type Word,
  type WordPart,
} from "../shell/ast.ts";
import { parseCommandLine, plainText } from "../shell/parse.ts";
import {
  isUnseenName,
  markUnknown,
  printedTexts,
  resolveAlternatives,
  resolveText,
  resolveWord,
  WORD_BREAK,
} from "../shell/resolve.ts";
import { executedFromInput } from "./executors.ts";
import {
  type Analysis,
  type Arg,
  type Invocation,
  programName,
  type Redirect,
  type Stage,
  type Substitution,
  type Wrapper,
} from "./invocation.ts";
import { type Payload, payloadsOf } from "./payloads.ts";
import {
  isShell,
  passesOn,
  printedBy,
  readsCommandsFromInput,
  shellOptions,
  shellPayload,
  unwrap,
  type WrittenRun,
  WrittenScripts,
} from "./shells.ts";

/** Texts inside texts; an honest command needs two or three. */
const MAX_PAYLOAD_DEPTH = 10;
/** Of all texts together: a short line can spell out a long one again and again. */
const MAX_READ_CHARS = 600_000;
/** Function bodies read once more for the words of a call. */
const MAX_CALLS = 50;
const MAX_CALLED_CHARS = 30_000;
/** `sudo sudo sudo ...`: each looks at all that is behind it. */
const MAX_WRAPPERS = 60;

/** `cwd`: where the line begins, if paths are to be measured from there. */
export function analyseCommand(command: string, cwd: string | null = null): Analysis {
  const found = new Finder(cwd);
  found.readText(command, { remote: false, depth: 0, via: [] });
  return found;
}

interface Context {
  readonly remote: boolean;
  readonly depth: number;
  readonly via: readonly Wrapper[];
}

/** What an invocation inherits from the command it is part of. */
interface Frame extends Context {
  readonly background: boolean;
  readonly assignments: readonly { readonly name: string; readonly value: string }[];
  readonly redirects: readonly Redirect[];
  readonly nameSubstitutions: readonly Substitution[];
  /** The name with marks, when it is not all known. */
  readonly markedName?: string | null;
}

/** Read one text further in, by whatever ran it. */
const inner = ({ remote, depth }: Context): Context => ({ remote, depth: depth + 1, via: [] });

class Finder implements Analysis {
  readonly invocations: Invocation[] = [];
  readonly pipelines: (readonly Stage[])[] = [];
  readonly sequences: (readonly Invocation[])[] = [];
  readonly texts: string[] = [];
  forkBomb = false;
  readonly functions: string[] = [];
  readonly written: WrittenRun[] = [];
  ok = true;
  tooDeep = false;
  private readonly scope: Scope = createScope();
  private cwd: string | null;
  private readChars = 0;
  private readonly bodies = new Map<string, readonly Script[]>();
  private calls = 0;
  private calledChars = 0;
  private readonly files = new WrittenScripts();

  constructor(cwd: string | null) {
    this.cwd = cwd;
  }

  readText(text: string, context: Context): readonly Invocation[] {
    this.readChars += text.length;
    if (context.depth > MAX_PAYLOAD_DEPTH || this.readChars > MAX_READ_CHARS) {
      this.tooDeep = true;
      return [];
    }
    this.texts.push(text);
    const parsed = parseCommandLine(text);
    if (parsed.tooDeep) this.tooDeep = true;
    const found = this.readScript(parsed.script, context);
    if (parsed.ok) return found;
    this.ok = false;
    return [...found, ...this.readNaively(text, context)];
  }

  private readScript(script: Script, context: Context): readonly Invocation[] {
    const sequence: Invocation[] = [];
    for (const pipeline of script.pipelines) {
      const background = pipeline.joiner === "&";
      const stages = pipeline.commands.map((command) => this.readCommand(command, context, background));
      this.pipelines.push(stages);
      sequence.push(...stages.flat(), ...this.readPipedTexts(stages, context));
    }
    this.sequences.push(sequence);
    return sequence;
  }

  private readCommand(command: Command, context: Context, background: boolean): Stage {
    return command.type === "simple"
      ? this.readSimple(command, context, background)
      : this.readGroup(command, context, background);
  }

  private readGroup(group: Group, context: Context, background: boolean): Stage {
    if (isForkBomb(group)) this.forkBomb = true;
    if (group.kind === "function") {
      this.bodies.set(group.name, group.bodies);
      this.functions.push(group.name);
    }
    for (const word of group.words) this.readWord(word, context);
    // The session keeps a function: what a later line calls it with, this one does not say.
    if (group.kind === "function") this.markPositional(UNKNOWN);
    const inside = group.bodies.flatMap((body) => this.readScript(body, context));
    if (group.kind === "function") this.markPositional(null);
    const redirects = this.readRedirects(group.redirections, context);
    if (redirects.length === 0) return inside;
    // The group's own redirections stand for themselves, as those of a command without a name.
    const own = this.add([], {
      ...context,
      background,
      assignments: [],
      redirects,
      nameSubstitutions: [],
    });
    this.files.noteGroup(redirects, inside);
    return [...inside, ...own];
  }

  private readSimple(command: SimpleCommand, context: Context, background: boolean): Stage {
    const assignments = command.assignments.map(({ name, index, append, value }) => {
      this.readParts(index, context);
      this.readWord(value, context);
      const text = resolveText(value, this.scope);
      const marked = { command: this.mark(value, "command"), argument: this.mark(value, "argument") };
      const before = append ? this.scope.get(name)?.[0] : undefined;
      // Elements of a list are added with a blank, letters without.
      const joint = /^[\w./-]*$/.test(text) && !/\s/.test(before ?? "") ? "" : " ";
      this.scope.set(name, before === undefined ? [text] : [`${before}${joint}${text}`]);
      if (marked.command !== null) this.scope.mark(name, marked);
      return { name, value: text };
    });
    const redirects = this.readRedirects(command.redirections, context);
    const [first, ...others] = command.words;
    const nameSubstitutions = first ? this.readWord(first, context) : [];
    const markedName = first ? this.markName(first) : null;
    const alternatives = first ? resolveAlternatives(first, this.scope, "command") : [];
    const names = alternatives.length > 0 ? alternatives : [[]];
    const behind = others.flatMap((word) => this.readArgs(word, context));
    const frame = { ...context, background, assignments, redirects, nameSubstitutions, markedName };
    return names.flatMap((name) => {
      const args = [...name.map((text) => ({ text, substitutions: nameSubstitutions })), ...behind];
      this.readVariables(args, redirects);
      return this.add(args, frame);
    });
  }

  private readArgs(word: Word, context: Context): readonly Arg[] {
    const substitutions = this.readWord(word, context);
    const marked = this.mark(word, "argument") ?? undefined;
    return resolveWord(word, this.scope, "argument").map((text) => ({ text, marked, substitutions }));
  }

  private mark(word: Word, position: Position): string | null {
    return markUnknown(word, this.scope, position);
  }

  /** With separators of the line's own, what a variable splits into is not followed. */
  private markName(word: Word): string | null {
    const separators = this.scope.get("IFS")?.[0]?.trim() ?? "";
    const splits = word.parts.some((part) => part.type === "variable" && !part.quoted);
    return separators !== "" && splits ? UNKNOWN : this.mark(word, "command");
  }

  private markPositional(marked: string | null): void {
    for (const name of POSITIONAL) this.scope.mark(name, { command: marked, argument: marked });
  }

  /** `for x in a b`: x may be either. Other words that give a variable its value do so at once. */
  private readVariables(args: readonly Arg[], redirects: readonly Redirect[]): void {
    const [head = "", ...words] = args.map(({ text }) => text);
    const [name, word, ...values] = words;
    if ((head === "for" || head === "select") && name !== undefined && word === "in") {
      this.scope.set(name, values);
      const marked = args.find((arg) => arg.marked !== undefined)?.marked;
      if (marked !== undefined) this.scope.mark(name, { command: UNKNOWN, argument: marked });
    }
    if (head === "set" && words.includes("--")) this.setPositional(words.slice(words.indexOf("--") + 1));
    else if (head === "set" && name !== undefined && !/^[-+]/.test(name)) this.setPositional(words);
    if (/^(?:export|declare|local|readonly|typeset)$/.test(head)) {
      const isReference = words.some((text) => /^-[a-zA-Z]*n/.test(text));
      for (const { text, marked } of args.slice(1)) {
        const match = /^([A-Za-z_][A-Za-z0-9_]*)=([\s\S]*)$/.exec(text);
        if (match) this.setVariable(match[1] ?? "", match[2] ?? "", { marked, isReference });
      }
    }
    if (head === "printf" && name === "-v" && word !== undefined) {
      this.scope.set(word, printedTexts("printf", values) ?? []);
    }
    const fed = redirects.find(({ operator }) => operator === "<<<")?.target;
    if (fed !== undefined && /^(?:read|mapfile|readarray)$/.test(head)) {
      for (const text of words) if (/^[A-Za-z_]\w*$/.test(text)) this.scope.set(text, [fed]);
    } else if (/^(?:read|mapfile|readarray)$/.test(head)) {
      for (const text of words)
        if (/^[A-Za-z_]\w*$/.test(text)) this.scope.mark(text, { command: UNKNOWN, argument: UNKNOWN });
    }
  }

  private setVariable(
    name: string,
    value: string,
    { marked, isReference }: { readonly marked: string | undefined; readonly isReference: boolean },
  ): void {
    const target = isReference ? this.scope.get(value) : [value];
    this.scope.set(name, target ?? [""]);
    if (target === undefined) this.scope.mark(name, { command: UNKNOWN, argument: UNKNOWN });
    else if (marked !== undefined) {
      const text = marked.slice(marked.indexOf("=") + 1);
      this.scope.mark(name, { command: text, argument: text });
    }
  }

  /** `$1`, `$2`, `$@` of what is read from here on. */
  private setPositional(values: readonly string[]): void {
    values.slice(0, 9).forEach((value, index) => {
      this.scope.set(String(index + 1), [value]);
    });
    for (const name of ["@", "*"]) this.scope.set(name, [values.join(WORD_BREAK)]);
  }

  /** Everything that runs inside a word. */
  private readWord(word: Word, context: Context): readonly Substitution[] {
    return this.readParts(word.parts, context);
  }

  private readParts(parts: readonly WordPart[], context: Context): readonly Substitution[] {
    return parts.flatMap((part): readonly Substitution[] => {
      if (part.type === "literal") return [];
      if (part.type === "arithmetic") return this.readParts(part.parts, context);
      if (part.type === "substitution") {
        return [{ form: part.form, invocations: this.readScript(part.script, context) }];
      }
      const inside = this.readParts(part.operand, context);
      if (part.operator === ":=" || part.operator === "=") {
        this.scope.set(part.name, [resolveText({ parts: part.operand, start: 0, end: 0 }, this.scope)]);
      }
      return inside;
    });
  }

  private readRedirects(redirections: readonly Redirection[], context: Context): readonly Redirect[] {
    return redirections.map(({ operator, fd, target, heredoc }) => {
      const substitutions = [...this.readWord(target, context), ...this.readParts(heredoc?.parts ?? [], context)];
      if (heredoc?.doubtful) this.readText(heredoc.body, { ...context, depth: context.depth + 1 });
      const marked = this.mark(target, "argument") ?? undefined;
      return { operator, fd, target: resolveText(target, this.scope), marked, heredoc, substitutions };
    });
  }

  /** Adds what the words run, and what that runs in turn. */
  private add(words: readonly Arg[], frame: Frame): readonly Invocation[] {
    const via = [...frame.via];
    const assignments = [...frame.assignments];
    let rest = words;
    for (;;) {
      const program = programName(rest[0]?.text ?? "");
      const args = rest.slice(1);
      const inner = unwrap(
        program,
        args.map(({ text }) => text),
      );
      if (!inner) break;
      if (via.length > MAX_WRAPPERS) {
        this.tooDeep = true;
        return [];
      }
      via.push({ program, args: args.slice(0, inner.commandAt).map(({ text }) => text) });
      assignments.push(...inner.assignments);
      rest = args.slice(inner.commandAt);
    }
    const path = rest[0]?.text ?? "";
    const isNothing = rest.length === 0 && frame.redirects.length === 0 && assignments.length === 0;
    const unseenName = isUnseenName(
      via.length > frame.via.length || frame.via.length > 0 ? rest[0]?.marked : frame.markedName,
    );
    if (isNothing && frame.nameSubstitutions.length === 0 && !unseenName) return [];
    const dynamic = path.startsWith("-") && via.length === 0;
    const invocation: Invocation = {
      program: dynamic ? "" : (matchWatchedProgram(path) ?? programName(path)),
      path,
      nameSubstitutions: frame.nameSubstitutions,
      args: dynamic ? rest : rest.slice(1),
      via,
      assignments,
      redirects: frame.redirects,
      remote: frame.remote,
      background: frame.background,
      cwd: this.cwd,
      dynamic,
      unseenName,
    };
    this.invocations.push(invocation);
    this.texts.push(rest.map(({ text }) => text).join(" "));
    if (invocation.program === "cd" || invocation.program === "pushd") this.changeDirectory(invocation);
    this.files.note(invocation);
    this.written.push(...this.files.codeRunBy(invocation));
    if (isShell(invocation.program)) this.readShellOperands(invocation);
    return [
      invocation,
      ...payloadsOf(invocation).flatMap((payload) => this.readPayload(payload, invocation, frame)),
      ...this.files.textsRunBy(invocation).flatMap((text) => this.readText(text, inner(frame))),
      ...this.readFunction(invocation, frame),
    ];
  }

  /** `sh -c script zero one two`. */
  private readShellOperands(invocation: Invocation): void {
    if (shellPayload(invocation) === null) return;
    const [, zero, ...values] = shellOptions(invocation).operands;
    if (zero === undefined) return;
    this.scope.set("0", [zero]);
    this.setPositional(values);
  }

  /** A function of this line, called with words: its body is read again with them in place. */
  private readFunction(invocation: Invocation, frame: Frame): readonly Invocation[] {
    const bodies = this.bodies.get(invocation.path);
    if (!bodies || invocation.args.length === 0) return [];
    for (const { pipelines } of bodies)
      this.calledChars += (pipelines.at(-1)?.end ?? 0) - (pipelines[0]?.start ?? 0) + 1;
    if (this.calls++ > MAX_CALLS || this.calledChars > MAX_CALLED_CHARS) return [];
    this.setPositional(invocation.args.map(({ text }) => text));
    return bodies.flatMap((body) => this.readScript(body, inner(frame)));
  }

  private changeDirectory({ args }: Invocation): void {
    const target = args.find(({ text }) => !/^-./.test(text))?.text ?? "~";
    if (target === "-") this.cwd = null;
    else if (/^[/~$]/.test(target)) this.cwd = target;
    else this.cwd = this.cwd === null ? target : `${this.cwd}/${target}`;
  }

  private readPayload(payload: Payload, owner: Invocation, frame: Frame): readonly Invocation[] {
    const remote = frame.remote || payload.remote;
    const depth = frame.depth + 1;
    if (payload.type === "text") return this.readText(payload.text, { remote, depth, via: [] });
    if (depth > MAX_PAYLOAD_DEPTH) {
      this.tooDeep = true;
      return [];
    }
    const via = [...owner.via, { program: owner.program, args: [] }];
    return this.add(payload.words, {
      remote,
      depth,
      via,
      background: frame.background,
      assignments: [],
      redirects: [],
      nameSubstitutions: [],
    });
  }

  /** `echo "..." | sh` and `cat <<E | sh`: the text is a script. `| tee file` writes one. */
  private readPipedTexts(stages: readonly Stage[], context: Context): readonly Invocation[] {
    let texts: readonly string[] = [];
    return stages.flatMap((stage) => {
      const fed = texts;
      if (!stage.every(passesOn)) texts = stage.flatMap(printedBy);
      for (const invocation of stage) this.files.noteTee(invocation, fed);
      const commands = stage.flatMap(({ program }) => executedFromInput(program, fed));
      if (stage.some(readsCommandsFromInput)) commands.push(...fed);
      return commands.flatMap((text) => this.readText(text, { ...context, depth: context.depth + 1 }));
    });
  }

  private readNaively(text: string, context: Context): readonly Invocation[] {
    return splitNaively(text).flatMap(({ words, targets }) =>
      this.add(
        words.map((word) => ({ text: word, substitutions: [] })),
        {
          ...context,
          background: false,
          assignments: [],
          nameSubstitutions: [],
          redirects: targets.map((target) => ({ operator: ">", fd: "", target, heredoc: null, substitutions: [] })),
        },
      ),
    );
  }
}

const POSITIONAL = [..."123456789@*"];

/** A function that calls itself at least twice with something in the background: `f() { f | f & }`. */
function isForkBomb(group: Group): boolean {
  if (group.kind !== "function" || group.name === "") return false;
  const seen = { calls: 0, background: false };
  for (const body of group.bodies) visit(body, group.name, seen);
  return seen.calls >= 2 && seen.background;
}

function visit(script: Script, name: string, seen: { calls: number; background: boolean }): void {
  for (const pipeline of script.pipelines) {
    if (pipeline.joiner === "&") seen.background = true;
    for (const command of pipeline.commands) {
      if (command.type === "group") for (const body of command.bodies) visit(body, name, seen);
      else if (firstWord(command) === name) seen.calls++;
    }
  }
}

function firstWord(command: Extract<Command, { type: "simple" }>): string | null {
  const [word] = command.words;
  return word ? plainText(word) : null;
}

/**
 * A line that did not parse, cut at everything that might begin a command. Quotes count for nothing here: better to see a command
 * in a text than to miss one.
 */
function splitNaively(text: string): readonly { words: readonly string[]; targets: readonly string[] }[] {
  return text
    .replaceAll("\\\n", "")
    .split(/[;&|\n`"'(){}]+/)
    .map((fragment) => {
      const targets = [...fragment.matchAll(/(?<!>)>+\s*([^\s<>]+)/g)].map((match) => match[1] ?? "");
      const words = fragment
        .replace(/(?:(?<![0-9])[0-9]+)?[<>]+\s*[^\s<>]*/g, " ")
        .replaceAll("\\", "")
        .split(/\s+/)
        .filter((word) => word !== "" && word !== "$" && !KEYWORDS.has(word) && !/^[A-Za-z_]\w*=/.test(word));
      return { words, targets };
    })
    .filter(({ words, targets }) => words.length > 0 || targets.length > 0);
}

const KEYWORDS = new Set(["if", "then", "elif", "else", "while", "until", "do", "!", "fi", "done", "esac"]);

// `/bin/r?` is a command too: the shell finds the file. Only programs that a rule knows matter.

const WATCHED =
  "rm dd mkfs shutdown reboot halt poweroff init telinit systemctl kill sudo sh bash chmod chown curl wget find xargs git docker tee cp mv sed".split(
    " ",
  );

function matchWatchedProgram(path: string): string | null {
  const base = path.slice(path.lastIndexOf("/") + 1);
  if (base === "[" || base === "[[" || !/[*?]|\[(?:[^[\]]+\[?|\[)\]/.test(base)) return null;
  return WATCHED.find((program) => matchGlob(base.toLowerCase(), program)) ?? null;
}
