/**
 * The text without its front matter. What stands between two lines `---` at the top counts as such only if it is YAML of keys and
 * values: a document that merely opens with a horizontal rule keeps its beginning.
 */
export async function withoutFrontMatter(text: string): Promise<string> {
  if (!/^\ufeff?---/.test(text)) return text;
  const { parseFrontMatter } = await import("../../kit/front-matter.ts"); // brings the YAML parser along
  const { present, problem, body } = parseFrontMatter(text);
  if (!present || (problem !== null && !looksLikeKeys(text))) return text;
  const rest = body.replace(/^\n+/, "");
  return rest === "" ? text : rest;
}

function looksLikeKeys(text: string): boolean {
  const [, first = ""] = text.split("\n").filter((line) => line.trim() !== "");
  return /^[A-Za-z_][\w .-]*:(?:\s|$)/.test(first);
}
