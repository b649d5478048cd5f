// What the demo says or calls next: a pure function of the request. It never pretends to think.
import { type Intent, intentOf } from "./intents.ts";
import { answerFrom } from "./results.ts";
import { chineseWords, englishWords, type Words } from "./words.ts";

export interface DemoRequest {
  readonly messages: readonly DemoMessage[];
  readonly tools: readonly string[];
}

export interface DemoMessage {
  readonly role: string;
  readonly text: string;
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
}

export type DemoReply =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "call"; readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };

export function replyTo({ messages, tools }: DemoRequest): DemoReply {
  const asked = messages.findLastIndex((message) => message.role === "user");
  const question = messages[asked]?.text ?? "";
  const words = /\p{Script=Han}/u.test(question) ? chineseWords : englishWords;
  const since = messages.slice(asked + 1);
  const call = since.findLast((message) => message.toolCalls.length > 0)?.toolCalls.at(-1);
  const result = since.findLast((message) => message.role === "tool");
  if (call && result) return { type: "text", text: answerFrom(call, result.text, words) };
  return carryOut(intentOf(question), tools, words);
}

function carryOut(intent: Intent, tools: readonly string[], words: Words): DemoReply {
  const say = (text: string): DemoReply => ({ type: "text", text });
  const call = (name: string, args: Readonly<Record<string, unknown>>): DemoReply =>
    tools.includes(name) ? { type: "call", name, arguments: args } : say(words.noTool(name));
  switch (intent.type) {
    case "help":
      return say(words.help);
    case "unknown":
      return say(words.notUnderstood);
    case "list":
      return tools.includes("terminal") || !tools.includes("search_files")
        ? call("terminal", { command: `ls -1p -- ${shellWord(intent.path)}` })
        : call("search_files", { pattern: "*", target: "files", path: intent.path });
    case "read":
      return call("read_file", { path: intent.path });
    case "run":
      return call("terminal", { command: intent.command });
    case "remember":
      return call("memory", { action: "add", target: intent.target, content: intent.fact });
    case "recall":
      return call("session_search", intent.query ? { query: intent.query } : {});
    case "skill":
      return call("skill_manage", { action: "create", ...skillOf(intent.title, intent.text) });
  }
}

function shellWord(path: string): string {
  return /^[\w./~@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

function skillOf(title: string, text: string): { name: string; content: string } {
  const slug = title
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 48);
  const name = slug || `note-${fingerprint(title + text)}`;
  const description = [...title.replace(/\s+/g, " ")].slice(0, 57).join("");
  return {
    name,
    content: `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n---\n\n# ${title}\n\n${text}\n`,
  };
}

/** FNV-1a: the same note always gets the same name. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0").slice(0, 6);
}
