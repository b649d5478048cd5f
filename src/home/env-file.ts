// The .env file: KEY=VALUE lines with secrets. Reading is lenient, writing touches one line.

export interface EnvText {
  readonly text: string;
  /** Older files are Latin-1; they are written back as they were where that is possible. */
  readonly encoding: "utf8" | "latin1";
}

export function decodeEnvBytes(bytes: Uint8Array): EnvText {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), encoding: "utf8" };
  } catch {
    return { text: Buffer.from(bytes).toString("latin1"), encoding: "latin1" };
  }
}

export function encodeEnvText({ text, encoding }: EnvText): Buffer {
  const fits = encoding === "utf8" || /^[\x00-\xff]*$/.test(text);
  return Buffer.from(text, fits ? encoding : "utf8");
}

/** Every variable the text defines; of several definitions the last one counts. */
export function parseEnv(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text
    .replace(/^\ufeff/, "")
    .replaceAll("\0", "")
    .split(/\r?\n/)) {
    const match = definition.exec(line);
    if (match) values.set(match[2] ?? "", unquote((match[3] ?? "").trim()));
  }
  return values;
}

const definition = /^(\s*(?:export\s+)?)([^\s=#]+)\s*=(.*)$/s;

function unquote(value: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/s.exec(value);
  if (quoted) return (quoted[1] ?? "").replace(/\\(["\\])/g, "$1");
  const raw = /^'([^']*)'$/s.exec(value);
  return raw ? (raw[1] ?? "") : value;
}

/** One line that reads back as this value; line breaks and NUL cannot be stored and are dropped. */
export function renderEnvValue(value: string): string {
  const line = value.replace(/[\r\n\0]/g, "");
  return /[\s#"'\\\ufeff]/.test(line) ? `"${line.replace(/["\\]/g, "\\$&")}"` : line;
}

/** The text with one variable set: its last definition replaced in place, or a new line at the end. */
export function setEnvLine(text: string, name: string, value: string): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split("\n");
  const index = lines.findLastIndex((line) => definedName(line) === name);
  if (index === -1) {
    const gap = text === "" || text === "\ufeff" || text.endsWith("\n") ? "" : eol;
    return `${text}${gap}${name}=${renderEnvValue(value)}${eol}`;
  }
  const old = lines[index] ?? "";
  const prefix = /^\ufeff?\s*(?:export\s+)?/.exec(old)?.[0] ?? "";
  lines[index] = `${prefix}${name}=${renderEnvValue(value)}${old.endsWith("\r") ? "\r" : ""}`;
  return lines.join("\n");
}

/** The text without any definition of the variable. */
export function removeEnvLine(text: string, name: string): string {
  const lines = text.split("\n");
  return lines.filter((line) => definedName(line) !== name).join("\n");
}

function definedName(line: string): string | undefined {
  return definition.exec(line.replace(/^\ufeff/, "").replaceAll("\0", ""))?.[2];
}

/** Why a variable must not be stored in .env, or null when it may. */
export function refusedEnvName(name: string): string | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    return `${JSON.stringify(name)} is not a variable name; use letters, digits and _ only, and no digit first.`;
  }
  if (!steersPrograms(name)) return null;
  return `${name} is not stored in .env: it changes how programs are found or started. Set it in your shell instead.`;
}

const denied = new Set(
  `NODE_OPTIONS NODE_PATH PATH SHELL BROWSER EDITOR VISUAL PAGER GIT_SSH_COMMAND GIT_EXEC_PATH GIT_SHELL HERMES_HOME HERMES_PROFILE
  HERMES_CONFIG HERMES_ENV`.split(/\s+/),
);

export function steersPrograms(name: string): boolean {
  const upper = name.toUpperCase();
  return denied.has(upper) || /^(?:LD_|DYLD_|PYTHON)/.test(upper);
}

/** Keys and tokens are ASCII: look-alike letters that came with a copied key are taken out. Null when there are none. */
export function withoutLookAlikes(name: string, value: string): { value: string; removed: string[] } | null {
  if (!/_(?:API_KEY|TOKEN|SECRET|KEY)$/.test(name) || /^[\x00-\x7f]*$/.test(value)) return null;
  const removed = new Set<string>();
  const clean = [...value].filter((char) => {
    const point = char.codePointAt(0) ?? 0;
    if (point < 0x80) return true;
    removed.add(`U+${point.toString(16).toUpperCase().padStart(4, "0")}`);
    return false;
  });
  return { value: clean.join(""), removed: [...removed] };
}
