// Did a call fail? The result decides, for the display and for whoever counts failures.

const LOOK_AT = 500;
const WRITERS = new Set(["write_file", "patch"]);

export function isFailedResult(name: string, result: string): boolean {
  const fields = parseObject(result);
  if (name === "terminal" && typeof fields?.exit_code === "number") return fields.exit_code !== 0;
  if (name === "memory" && fields?.success === false) return true;
  if (WRITERS.has(name) && hasLanded(fields)) return false;
  if (/^\s*error/i.test(result)) return true;
  return /"(?:error|failed)"\s*:(?!\s*(?:null|false|""|\[\s*\]|0\b))/.test(result.slice(0, LOOK_AT));
}

/** The file was written, whatever else the result complains about (a linter, a warning). */
function hasLanded(fields: Readonly<Record<string, unknown>> | null): boolean {
  return fields !== null && (fields.success === true || typeof fields.bytes_written === "number");
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  if (!text.trimStart().startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null; // a parsed object
  } catch {
    // Not JSON after all: judged as plain text.
    return null;
  }
}
