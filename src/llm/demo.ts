// The embedded model: chat completions at `demo:/v1` without a server, a network or an AI. A few fixed requests, in English and Chinese,
// drive the real tools. The same request always gets the same answer.

import { hash } from "node:crypto";
import { hermesCommand } from "../home/paths.ts";
import { asList, asRecord, asText, type Json, parseJson } from "../kit/json.ts";
import { toldToPeople } from "../safety/decision.ts";
import { estimateTokens } from "./usage.ts";
import type { FetchLike } from "./wires/transport.ts";

type Reply = { readonly text: string } | { readonly tool: string; readonly args: Json };
/** Nothing longer is understood, and the expressions below are not made for it. */
const LONGEST_QUESTION = 2000;
type Groups = Readonly<Record<string, string | undefined>>;
/** Picks the text in the user's language. */
type Say = (english: string, chinese: string) => string;

/** The answer to a chat request, in one piece: there is nothing to wait for. */
export async function demoFetch({ body = "", signal }: Parameters<FetchLike>[1]): Promise<Response> {
  signal?.throwIfAborted();
  const { messages, tools } = asRecord(parseJson(body));
  const reply = replyTo(asList(messages).map(asRecord), asList(tools));
  const position = asList(messages).length;
  const said = "text" in reply ? reply.text : JSON.stringify(reply.args);
  const call = "tool" in reply && {
    id: `call_demo_${position}`,
    type: "function",
    function: { name: reply.tool, arguments: said },
  };
  const message = call ? { content: null, tool_calls: [call] } : { content: said };
  return Response.json({
    id: `chatcmpl-demo-${position}`,
    object: "chat.completion",
    model: "demo",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: call ? "tool_calls" : "stop" }],
    usage: { prompt_tokens: estimateTokens(body), completion_tokens: estimateTokens(said) },
  });
}

function replyTo(messages: readonly Json[], tools: readonly unknown[]): Reply {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  // What follows in brackets are notes for a model: that somebody is new, that a message is old.
  const [typed = ""] = textOf(messages[asked]?.content).split("\n\n[", 1);
  const question = typed.trim().slice(0, LONGEST_QUESTION);
  const say: Say = (english, chinese) => (/\p{Script=Han}/u.test(question) ? chinese : english);
  const since = messages.slice(asked + 1);
  const call = asRecord(since.flatMap(({ tool_calls }) => asList(tool_calls)).at(-1));
  const result = since.findLast(({ role }) => role === "tool");
  if (result) return { text: answerFrom(asRecord(call.function), textOf(result.content), say) };

  const offered = tools.map((tool) => asText(asRecord(asRecord(tool).function).name));
  const reply = understand(question, offered) ?? { text: notUnderstood(say) };
  if ("text" in reply || offered.includes(reply.tool)) return reply;
  const text = say(
    `That needs the tool \`${reply.tool}\`, which is not offered here.`,
    `这里没有提供工具 \`${reply.tool}\`。`,
  );
  return { text };
}

function textOf(content: unknown): string {
  const parts = typeof content === "string" ? [content] : asList(content).map((part) => asText(asRecord(part).text));
  return parts.join("\n");
}

function notUnderstood(say: Say): string {
  return say(
    `I am the built-in demo, not an AI: I only know a few fixed requests, which drive the real tools. Try:
- \`list files\` or \`list files in src\`
- \`read README.md\`
- \`run date\`
- \`remember that I prefer short answers\`
- \`search past conversations for backups\`
- \`make a skill called release: 1. run the tests 2. tag\`

To talk to a real model, type \`/setup\` on the screen, or run \`${hermesCommand("setup")}\`.`,
    `我是内置的演示程序，不是人工智能，只能按固定的说法调用真正的工具。可以试试：
- \`列出文件\` 或 \`列出 src 的文件\`
- \`读取 README.md\`
- \`运行 date\`
- \`记住：我喜欢简短的回答\`
- \`搜索以前的对话：备份\`
- \`创建技能 发布：1. 跑测试 2. 打标签\`

要使用真正的模型，请在界面中输入 \`/setup\`，或运行 \`${hermesCommand("setup")}\`。`,
  );
}

const POLITE =
  /^(?:(?:please|hermes|hey|ok|now|(?:can|could|would|will) you|请你?|麻烦你?|帮我|你?能不能|你能|可以|现在)[,，:\s]*)+/i;

/** The first pattern that matches decides. */
const REQUESTS: readonly (readonly [(found: Groups, tools: readonly string[]) => Reply, ...RegExp[]])[] = [
  [
    skill,
    /^(?:make|create|write|save|add)\b.{0,30}?\bskill\b(?: called| named| for)?(?<title>[^:\n]{0,60})[:\n](?<text>.+)$/is,
    /^(?:创建|新建|写|做|保存)(?:一个|一条)?技能(?:叫做?|名为)?(?<title>[^：:\n]{0,60})[：:\n](?<text>.+)$/s,
  ],
  [
    recall,
    /^(?:search|look|find)\b.{0,24}?\b(?:past|previous|earlier|old|our)\b.{0,12}?\b(?:conversation|chat|session)s?\b(?: for| about)?:?(?<query>.*)$/i,
    /^(?:what did|did|have) (?:we|i) (?:ever )?(?:say|talk|talked|discuss|write)(?: about)? (?<query>.+)$/i,
    /^(?:搜索|查找|[找查]一下)(?:我们)?(?:以前|之前|过去|历史)的?(?:对话|聊天|会话)(?:记录)?[：:，,]?(?<query>.*)$/,
    /^我们?(?:以前|之前|上次)(?:聊|说|谈)过?(?<query>.+?)吗?[？?]?$/,
  ],
  [remember, /^(?:remember\b(?: that\b| this\b)?|记住|记下|记得|记一下)[\s:：，,]*(?<fact>.+)$/is],
  [
    run,
    /^(?:run|execute)(?: the)?(?: shell)? command\b:?(?<command>.+)$/is,
    /^(?:run|execute) (?!(?:the|my|a|all|it)\b)(?<command>.+)$/is,
    /^(?:[$!]|(?:运行|执行)(?:一下)?(?:命令)?[：:]?)(?<command>.+)$/s,
  ],
  [
    list,
    /^(?:ls|dir)(?: (?<path>[^\s-]\S*))?$/i,
    /^(?:list|show|which|what)\b.{0,16}?\bfiles?\b(?: are| is| there)*(?: (?:in|inside|of|under) (?<path>.+)| here)?[.?!]*$/i,
    /^what(?:'s| is) in (?<path>(?:\w+ ){1,2}(?:folder|directory))[.?!]*$/i,
    /^(?:列出|显示|看看|查看)(?:一下)?\s*(?:(?<path>\S*?)\s*(?:目录|文件夹)?(?:里面|里|中|下)?的)?(?:所有|全部)?文件[。？?！]*$/,
    /^(?<path>\S*?)\s*(?:目录|文件夹)?(?:里面|里|中|下)?都?有(?:哪些|什么)文件[。？?！]*$/,
  ],
  [
    read,
    /^(?:read|open|show|cat|print|display)(?: me)?(?: the| my)?(?: file| contents of)* (?<path>`[^`]+`|"[^"]+"|\S+?)(?: file)?[.?!]*$/i,
    /^what(?:'s| is) in (?:the )?(?:file )?(?<path>\S*\.\S+?)[?!]*$/i,
    /^(?:读取?|打开|查看|看看|显示)(?:一下)?(?:文件)?\s*(?<path>\S+?)\s*(?:这个)?(?:文件)?(?:的内容)?[。？?！]*$/,
  ],
];

function understand(question: string, tools: readonly string[]): Reply | null {
  for (const text of [question, question.replace(POLITE, "")]) {
    for (const [reply, ...patterns] of REQUESTS) {
      const found = patterns.map((pattern) => pattern.exec(text)).find(Boolean);
      if (found) return reply(found.groups ?? {}, tools);
    }
  }
  return null;
}

function list({ path: named = "" }: Groups, tools: readonly string[]): Reply {
  const folder = unquoted(named).replace(/^the\s+|\s+(?:folder|directory)$/gi, "");
  const path = /^(?:|here|this|current|当前|这个?|这里)$/i.test(folder) ? "." : folder;
  if (!tools.includes("terminal") && tools.includes("search_files"))
    return { tool: "search_files", args: { pattern: "*", target: "files", path } };
  const word = /^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
  return { tool: "terminal", args: { command: `ls -1p -- ${word}` } };
}

function read({ path = "" }: Groups): Reply {
  return { tool: "read_file", args: { path: unquoted(path) } };
}

function run({ command = "" }: Groups): Reply {
  return { tool: "terminal", args: { command: command.trim().replace(/^`+(.+?)`+$/s, "$1") } };
}

function remember({ fact = "" }: Groups): Reply {
  const target = /\b(?:i|my|me|mine)\b|我/i.test(fact) ? "user" : "memory";
  return { tool: "memory", args: { action: "add", target, content: fact } };
}

function recall({ query = "" }: Groups): Reply {
  return { tool: "session_search", args: query.trim() ? { query: unquoted(query) } : {} };
}

function skill({ title: named = "", text = "" }: Groups): Reply {
  const title = unquoted(named) || (/\S.{0,40}/u.exec(text)?.[0] ?? "");
  const fingerprint = hash("sha256", title + text).slice(0, 6);
  const name = (title.toLowerCase().match(/[a-z0-9]+/g) ?? ["note", fingerprint]).join("-").slice(0, 48);
  const content = `---\nname: ${name}\ndescription: ${JSON.stringify(title)}\n---\n\n# ${title}\n\n${text.trim()}\n`;
  return { tool: "skill_manage", args: { action: "create", name, content } };
}

/** Without the quotes around it and the full stop or question mark at its end. */
function unquoted(text: string): string {
  const bare = text.trim().replace(/(?:[?!。？！]|(?<=\w)\.)+$/, "");
  return /^["'`“](.*)["'`”]$/s.exec(bare)?.[1] ?? bare;
}

/** Around text from outside, which this model repeats and never follows. */
const FENCE = /^<untrusted_tool_result [^>]*>\n[^\n]*\n\n([\s\S]*)\n<\/untrusted_tool_result/;

/** What the tool gave, or plainly what went wrong. */
function answerFrom(call: Json, sent: string, say: Say): string {
  const result = FENCE.exec(sent)?.[1] ?? sent;
  const name = asText(call.name);
  const args = asRecord(parseJson(asText(call.arguments)));
  // Results are one line of JSON; notes may follow.
  const fields = asRecord(parseJson(result.split("\n", 1)[0] ?? ""));
  const told = asText(fields.error) || (fields.success === false ? asText(fields.message) || "failed" : "");
  const error = toldToPeople(told).replace(/^(?:BLOCKED|DENIED)[^:]*: /, "");
  if (fields.exit_code === -1) return say(`The command was not run: ${error}`, `命令没有运行：${error}`);
  if (typeof fields.exit_code === "number") return ranAnswer(asText(args.command), fields, say);
  if (error) return say(`The tool \`${name}\` reported an error: ${error}`, `工具 \`${name}\` 报告了错误：${error}`);
  if (Array.isArray(fields.files)) return fileList(fields.files.map(asText), say);
  if (typeof fields.content === "string") {
    const text = fields.content.replace(/^ *\d+\|/gm, "").trimEnd();
    return `${say(`Text of \`${args.path}\`:`, `\`${args.path}\` 的内容：`)}\n\n${fenced(text)}`;
  }
  if (Array.isArray(fields.results)) return foundAnswer(asText(args.query), fields.results.map(asRecord), say);
  if (name === "memory") return say(`Saved to memory: ${args.content}`, `已记住：${args.content}`);
  if (name === "skill_manage") return say(`The skill \`${args.name}\` is saved.`, `技能 \`${args.name}\` 已保存。`);
  return `${say(`\`${name}\` answered:`, `\`${name}\` 的结果：`)}\n\n${fenced(result)}`;
}

function ranAnswer(command: string, { output, exit_code, note }: Json, say: Say): string {
  const text = asText(output).trim();
  if (command.startsWith("ls -1p -- ") && exit_code === 0) return fileList(text.split("\n").filter(Boolean), say);
  const ended = `\`${command}\` ${say(`ended with exit code ${exit_code}.`, `已结束，退出码 ${exit_code}。`)}`;
  const printed = text ? `${ended}\n\n${fenced(text)}` : `${ended} ${say("It printed nothing.", "没有输出。")}`;
  return note ? `${printed}\n\n${asText(note)}` : printed;
}

function fileList(names: readonly string[], say: Say): string {
  if (names.length === 0) return say("The folder is empty.", "文件夹是空的。");
  const rest = names.length > 60 ? [say(`... and ${names.length - 60} more.`, `……还有 ${names.length - 60} 项。`)] : [];
  const count = say(`${names.length} ${names.length === 1 ? "entry" : "entries"}:`, `共 ${names.length} 项：`);
  return [count, ...names.slice(0, 60).map((name) => `- ${name}`), ...rest].join("\n");
}

function foundAnswer(query: string, results: readonly Json[], say: Say): string {
  if (results.length === 0)
    return say(`No earlier conversation mentions "${query}".`, `以前的对话里没有提到“${query}”。`);
  const lines = results.map(({ title, session_id, when, last_active, snippet, preview }) =>
    [title ?? session_id, when ?? last_active, snippet ?? preview].filter(Boolean).join(" · ").replace(/\s+/g, " "),
  );
  const about = query ? say(` about "${query}"`, `提到“${query}”`) : "";
  const conversations = results.length === 1 ? "conversation" : "conversations";
  const head = say(`${results.length} earlier ${conversations}${about}:`, `以前的 ${results.length} 次对话${about}：`);
  return [head, ...lines.map((line) => `- ${line}`)].join("\n");
}

/** A fence longer than any that the text holds. */
function fenced(text: string): string {
  const fence = "`".repeat(Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length)) + 1);
  return `${fence}\n${text.length > 4000 ? `${text.slice(0, 4000)}\n...` : text}\n${fence}`;
}
