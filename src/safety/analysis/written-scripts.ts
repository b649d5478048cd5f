// `cat > x.sh <<E ... ; bash x.sh`: what one command of a line writes into a file, a later one may run.
import { printedTexts } from "../shell/printed-text.ts";
import { argTexts, type Invocation } from "./invocation.ts";
import { isShell, shellOptions } from "./shells.ts";

const plain = (path: string) => path.replace(/^(?:\.\/+)+/, "");

/** What an invocation prints, as far as the line tells: `echo`, `printf`, or `cat` with a heredoc. */
export function printedBy(invocation: Invocation): readonly string[] {
  const fed = invocation.redirects.flatMap(({ operator, heredoc, target }) => {
    if (heredoc) return [heredoc.body];
    return operator === "<<<" ? [target] : [];
  });
  return [...fed, ...(printedTexts(invocation.program, argTexts(invocation)) ?? [])];
}

/** Hands its input on unchanged. */
export const passesOn = (invocation: Invocation): boolean =>
  invocation.program === "tee" ||
  (invocation.program === "cat" && invocation.args.every(({ text }) => text.startsWith("-")) && !hasInput(invocation));

const hasInput = ({ redirects }: Invocation) => redirects.some(({ operator }) => operator.startsWith("<"));

export class WrittenScripts {
  private readonly texts = new Map<string, readonly string[]>();

  note(invocation: Invocation): void {
    for (const { operator, target } of invocation.redirects) {
      if (/^(?:>>?|>\||&>)$/.test(operator)) this.add(target, printedBy(invocation));
    }
  }

  noteTee(invocation: Invocation, fed: readonly string[]): void {
    if (invocation.program !== "tee") return;
    const texts = [...fed, ...printedBy(invocation)];
    for (const text of argTexts(invocation)) if (!text.startsWith("-")) this.add(text, texts);
  }

  /** The texts of files that the invocation runs: by path, through a shell, or by sourcing them. */
  textsRunBy(invocation: Invocation): readonly string[] {
    if (this.texts.size === 0) return [];
    const { program, path } = invocation;
    const byPath = path.includes("/") ? [path] : [];
    const sourced = program === "source" || program === "." ? argTexts(invocation).slice(0, 1) : [];
    const fed = invocation.redirects.filter(({ operator }) => operator === "<").map(({ target }) => target);
    const scripts = isShell(program) ? [...shellOptions(invocation).operands.slice(0, 1), ...fed] : [];
    return [...byPath, ...sourced, ...scripts].flatMap((file) => this.take(plain(file)));
  }

  /** Once: a script may start itself anew. */
  private take(name: string): readonly string[] {
    const texts = this.texts.get(name) ?? [];
    this.texts.delete(name);
    return texts;
  }

  private add(file: string, texts: readonly string[]): void {
    if (texts.length === 0) return;
    const name = plain(file);
    this.texts.set(name, [...(this.texts.get(name) ?? []), ...texts].slice(-20));
  }
}
