// Whether a data file can still be read by the programs it is for.

/** The problem of a text in a format we can check (JSON, YAML, TOML), or null: fine, or a format we do not know. */
export async function findSyntaxProblem(path: string, text: string): Promise<string | null> {
  if (/\.json$/i.test(path)) return jsonProblem(text);
  if (/\.ya?ml$/i.test(path)) return yamlProblem(text);
  if (/\.toml$/i.test(path)) return tomlProblem(text);
  return null;
}

function jsonProblem(text: string): string | null {
  if (text.trim() === "") return null;
  try {
    JSON.parse(text.replace(/^\ufeff/, ""));
    return null;
  } catch (error) {
    return `invalid JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

async function yamlProblem(text: string): Promise<string | null> {
  const { parseAllDocuments } = await import("yaml");
  const documents = parseAllDocuments(text, { logLevel: "silent" });
  const problem = Array.isArray(documents) ? documents.flatMap((document) => document.errors)[0] : undefined;
  return problem === undefined ? null : `invalid YAML: ${problem.message.split("\n")[0]}`;
}

async function tomlProblem(text: string): Promise<string | null> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    // Whole numbers of 64 bits are valid, though JavaScript has no room for them.
    parse(text.replace(/^\ufeff/, ""), { integersAsBigInt: true });
    return null;
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split("\n")[0]?.replace(/^Invalid TOML document: /, "");
    return `invalid TOML: ${reason} (line ${error.line}, column ${error.column})`;
  }
}
