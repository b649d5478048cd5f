import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { type Options, readOptions } from "../analysis/options.ts";

const RUNNERS = new Set(["node", "bun", "deno", "npx", "bunx", "pnpx"]);

/** The arguments of Hermes itself, however it is started; null when this is another program. */
export function hermesOptions(invocation: Invocation): Options | null {
  const args = argTexts(invocation);
  if (/^hermes(?:\.mjs)?$/.test(invocation.program)) return read(args);
  if (!RUNNERS.has(invocation.program)) return null;
  const at = args.findIndex((arg) => /(?:^|\/)hermes(?:\.mjs|-agent)?(?:@[\w.-]+)?$/.test(arg));
  return at < 0 ? null : read(args.slice(at + 1));
}

/** The words of a hermes command line without its options. */
export function hermesWords(invocation: Invocation): readonly string[] {
  return hermesOptions(invocation)?.operands ?? [];
}

const read = (args: readonly string[]) =>
  readOptions(args, {
    short: "pmtsrzq",
    long: ["profile", "model", "provider", "toolsets", "skills", "resume", "source"],
  });
