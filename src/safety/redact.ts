// The one redactor: tool output, logs, approval questions, stored text and exports all pass it.
import { redactAssignments, redactFields, redactFormBody } from "./redact/assignments.ts";
import { redactHeaders, redactPhones, redactTelegramTokens, redactUrlPasswords } from "./redact/carriers.ts";
import { fileMarks, type Marks, screenMarks } from "./redact/marks.ts";
import { redactPrivateKeys } from "./redact/private-keys.ts";
import { redactTokens, redactWebTokens } from "./redact/tokens.ts";
import { prepareKnown, redactKnown } from "./redact-known.ts";

/**
 * Masks secrets in a text.
 *
 * - Linear in the text's length, and idempotent: what was masked once stays as it is.
 * - `forKeeping` is for notes the agent keeps about its user and its work.
 * - `forFile` is for text that a model may write back: its marks can never pass for a working key, and it keeps the number of lines.
 */
export interface Redactor {
  (text: string): string;
  forFile(text: string, path: string): string;
  /** What no note may hold: known values and secrets that show what they are. Names with a value beside them and numbers stay. */
  forKeeping(text: string): string;
}

export interface RedactorOptions {
  /** Read once at start, so that nothing the agent does can switch it off. */
  readonly enabled: boolean;
  /** Every secret value of this home; asked on each call, so that new ones count at once. */
  readonly knownSecrets: () => readonly string[];
}

export function createRedactor({ enabled, knownSecrets }: RedactorOptions): Redactor {
  const unchanged = (text: string) => text;
  if (!enabled) return Object.assign(unchanged, { forFile: unchanged, forKeeping: unchanged });
  let source: readonly string[] | undefined;
  let known: readonly string[] = [];
  const currentlyKnown = () => {
    const secrets = knownSecrets();
    if (secrets !== source) {
      source = secrets;
      known = prepareKnown(secrets);
    }
    return known;
  };
  const redact = (text: string) => redactFormBody(redactText(text, currentlyKnown(), screenMarks, true), screenMarks);
  const forFile = (text: string, path: string) => redactText(text, currentlyKnown(), fileMarks, !isSourceCode(path));
  const forKeeping = (text: string) => {
    const keyless = redactPrivateKeys(redactKnown(text, currentlyKnown(), fileMarks), fileMarks);
    return redactWebTokens(redactTokens(keyless, fileMarks), fileMarks);
  };
  return Object.assign(redact, { forFile, forKeeping });
}

/** A secret as settings screens show it. */
export function maskSecret(value: string): string {
  if (value === "") return "";
  return value.length < 12 ? "***" : `${value.slice(0, 4)}...${value.slice(-4)}`;
}

/** A later step sees what an earlier one left; none makes a text that an earlier one would catch. */
function redactText(text: string, known: readonly string[], marks: Marks, fields: boolean): string {
  let result = redactKnown(text, known, marks);
  result = redactPrivateKeys(result, marks);
  result = redactTokens(result, marks);
  result = redactWebTokens(result, marks);
  result = redactHeaders(result, marks);
  result = redactAssignments(result, marks);
  if (fields) result = redactFields(result, marks);
  result = redactUrlPasswords(result, marks);
  result = redactTelegramTokens(result, marks);
  return redactPhones(result);
}

const SOURCE_CODE =
  /\.(?:[cm]?[jt]sx?|py|pyi|rb|go|rs|java|kt|kts|scala|swift|c|cc|cpp|cxx|h|hh|hpp|cs|php|pl|lua|r|dart|ex|exs|erl|hs|clj|vue|svelte|sh|bash|zsh|fish|ps1|sql)$/i;

/** In source code a field of such a name holds a type, a message or a test value far more often than a secret. */
function isSourceCode(path: string): boolean {
  return SOURCE_CODE.test(path);
}
