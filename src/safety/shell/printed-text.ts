import { decodeAnsiC } from "./ansi-c.ts";

/** What `echo` or `printf` would print; two readings where shells differ on escapes. Null for any other program. */
export function printedTexts(program: string, args: readonly string[]): readonly string[] | null {
  if (program === "echo") {
    const text = args.filter((arg) => !/^-[neE]+$/.test(arg)).join(" ");
    return text.includes("\\") ? [text, decodeAnsiC(text)] : [text];
  }
  if (program !== "printf") return null;
  const [format = "", ...values] = args[0] === "--" ? args.slice(1) : args;
  return [fillFormat(decodeAnsiC(format), values)];
}

const DIRECTIVE = /%(?:%|[-+ #0]*[0-9*]*(?:\.[0-9*]+)?[a-zA-Z])/g;

/** As printf does: the format is used again as long as values are left. */
function fillFormat(format: string, values: readonly string[]): string {
  let at = 0;
  let text = "";
  for (let round = 0; round === 0 || (at < values.length && round < 100); round++) {
    const before = at;
    text += format.replace(DIRECTIVE, (directive) => (directive === "%%" ? "%" : (values[at++] ?? "")));
    if (at === before) break;
  }
  return text;
}
