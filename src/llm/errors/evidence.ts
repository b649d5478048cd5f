// Everything an error says about itself, gathered once: status, code, text.

export interface ApiFailure {
  readonly message?: string | undefined;
  readonly status?: number | undefined;
  readonly code?: string | undefined;
  readonly name?: string | undefined;
  readonly body?: unknown;
  readonly cause?: unknown;
}

export interface Evidence {
  readonly status: number | undefined;
  /** The provider's machine word, lower case. */
  readonly code: string;
  /** All the words, lower case. */
  readonly text: string;
  /** The outer message of the body (or of the error), as written. */
  readonly message: string;
}

type Fields = Readonly<Record<string, unknown>>;

export function gatherEvidence(error: ApiFailure): Evidence {
  const chain = causes(error);
  const body = opened(error.body ?? chain.find((link) => link.body !== undefined)?.body);
  const inner = fields(body.error);
  const outer = text(inner.message) || text(body.message) || text(body.error) || error.message || "";
  const hidden = fields(parsed(outer));
  const metadata = fields(inner.metadata);
  const raw = text(metadata.raw);
  const words = [
    ...chain.flatMap((link) => [text(link.message), text(link.code), text(link.name)]),
    outer,
    raw,
    text(fields(fields(parsed(raw)).error).message),
  ];
  const code =
    codeOf(inner) ||
    codeOf(body) ||
    codeOf(fields(hidden.error)) ||
    codeOf(hidden) ||
    text(body.error_code) ||
    text(body.errorCode);
  return {
    status: statusOf(chain),
    code: code.toLowerCase(),
    text: [...words, code].join("\n").toLowerCase(),
    message: text(fields(hidden.error).message) || text(hidden.message) || outer,
  };
}

function causes(error: ApiFailure): readonly Fields[] {
  const links: Fields[] = [];
  for (let link: unknown = error; links.length < 5 && typeof link === "object" && link !== null; ) {
    const current = link as Fields & { cause?: unknown }; // an object, checked by the loop
    // `message` and `code` of real Error objects are not enumerable: read them by name.
    links.push({
      message: current.message,
      code: current.code,
      name: current.name,
      status: current.status ?? current.statusCode,
      body: current.body,
    });
    link = current.cause;
  }
  return links;
}

function statusOf(chain: readonly Fields[]): number | undefined {
  return chain.map((link) => link.status).find((status) => typeof status === "number");
}

function codeOf(record: Fields): string {
  return text(record.code) || text(record.type);
}

function opened(body: unknown): Fields {
  return fields(typeof body === "string" ? (parsed(body) ?? { message: body }) : body);
}

function parsed(value: string): unknown {
  if (!value.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(value);
  } catch {
    return undefined; // plain words that happen to begin with a brace
  }
}

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}; // checked just before
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
