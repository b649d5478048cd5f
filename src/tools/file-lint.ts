// Whether a data file can still be read by the programs it is for.

/** The problem of a text in a format we can check (JSON, YAML), or null: fine, or a format we do not know. */
export async function findSyntaxProblem(path: string, text: string): Promise<string | null> {
  if (/\.json$/i.test(path)) return jsonProblem(text);
  if (/\.ya?ml$/i.test(path)) return yamlProblem(text);
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
