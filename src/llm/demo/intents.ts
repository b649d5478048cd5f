// The handful of plain requests the demo understands, in English and Chinese. A table: first match wins.

export type Intent =
  | { readonly type: "help" }
  | { readonly type: "list"; readonly path: string }
  | { readonly type: "read"; readonly path: string }
  | { readonly type: "run"; readonly command: string }
  | { readonly type: "remember"; readonly fact: string; readonly target: "user" | "memory" }
  | { readonly type: "recall"; readonly query: string }
  | { readonly type: "skill"; readonly title: string; readonly text: string }
  | { readonly type: "unknown" };

interface Row {
  readonly pattern: RegExp;
  readonly intent: (found: Readonly<Record<string, string | undefined>>) => Intent;
}

const help = (): Intent => ({ type: "help" });
const list: Row["intent"] = ({ path }) => ({ type: "list", path: folder(path ?? "") });
const read: Row["intent"] = ({ path }) => ({ type: "read", path: unquote(path ?? "") });
const run: Row["intent"] = ({ command }) => ({ type: "run", command: uncode(command ?? "") });
const recall: Row["intent"] = ({ query }) => ({ type: "recall", query: unquote(query ?? "") });
const remember: Row["intent"] = ({ fact }) => {
  const text = (fact ?? "").trim();
  return { type: "remember", fact: text, target: /\b(i|i'm|my|me|mine)\b|我/i.test(text) ? "user" : "memory" };
};
const skill: Row["intent"] = ({ title, text }) => ({
  type: "skill",
  title: unquote(title ?? "") || (text ?? "").trim().slice(0, 40),
  text: (text ?? "").trim(),
});

const TABLE: readonly Row[] = [
  { pattern: /^(help|hi|hello|hey|\?|what can you do|who are you|what are you)\b.{0,20}$/i, intent: help },
  { pattern: /^(帮助|你好|您好|嗨|你能做什么|你会什么|你会做什么|你是谁|怎么用).{0,8}$/, intent: help },

  {
    pattern:
      /^(?:make|create|write|save|add)\b.{0,30}?\bskill\b(?:\s+(?:called|named|for))?\s*(?<title>[^:\n]{0,60}?)\s*(?::|\n|\bthat says\b)\s*(?<text>[\s\S]+)$/i,
    intent: skill,
  },
  {
    pattern:
      /^(?:创建|新建|写|做|保存)(?:一个|一条)?(?:新的?)?技能\s*(?:叫做?|名为)?\s*(?<title>[^：:，,\n]{0,60}?)\s*[：:，,\n]\s*(?<text>[\s\S]+)$/,
    intent: skill,
  },
  {
    pattern: /^把(?<text>[\s\S]+?)(?:保存|存|做|写)(?:成|为)(?:一个|一条)?技能(?<title>)[。！]?$/,
    intent: skill,
  },

  {
    pattern:
      /^(?:search|look|look up|find)\b.{0,24}?\b(?:past|previous|earlier|old|our)\b.{0,12}?\b(?:conversations?|chats?|sessions?|messages?|talks?)\b\s*(?:for|about|on)?\s*:?\s*(?<query>.*)$/i,
    intent: recall,
  },
  {
    pattern:
      /^(?:what did (?:we|i) (?:say|talk|discuss|write)|did (?:we|i) (?:ever )?(?:talk|say|discuss)|have we talked|do you remember)\s*(?:something\s+)?(?:about)?\s+(?<query>.+)$/i,
    intent: recall,
  },
  {
    pattern:
      /^(?:搜索|查找|搜一下|找一下|查一下)(?:我们)?(?:以前|之前|过去|历史)的?(?:对话|聊天|会话|记录|聊天记录)(?:中|里)?的?(?:关于)?\s*[：:，,]?\s*(?<query>.*)$/,
    intent: recall,
  },
  {
    pattern:
      /^我们?(?:以前|之前|上次)(?:是不是)?(?:聊|说|谈|讨论)过?(?:关于)?(?<query>.+?)(?:的事|吗|什么|没有)?[？?。]?$/,
    intent: recall,
  },

  { pattern: /^remember\b\s*(?:that\b|this\b)?\s*[:,]?\s*(?<fact>[\s\S]+)$/i, intent: remember },
  { pattern: /^(?:记住|记下|记一下|记得)\s*[：:，,]?\s*(?<fact>[\s\S]+)$/, intent: remember },

  {
    pattern: /^(?:ls|dir)(?:\s+(?<path>[^\s-]\S*))?$/i,
    intent: list,
  },
  {
    pattern:
      /^(?:list|show|what are|which|what|tell me)\b(?:\s+me)?.{0,16}?\b(?:files?|folder|directory)\b(?:\s+(?:are|is|there|do you see))*\s*(?:(?:in|inside|of|under|from)\s+(?<path>.+?)|here)?[?.!]?$/i,
    intent: list,
  },
  { pattern: /^what(?:'s|\s+is)\s+(?:in\s+)?(?:this|the current|the)\s+(?:folder|directory)[?.!]?$/i, intent: list },
  {
    pattern:
      /^(?:列出|列一下|显示|看看|查看)(?:一下)?\s*(?:(?<path>\S*?)\s*(?:(?:目录|文件夹)(?:里面的?|里的?|中的?|下的?|的)?|里面的?|里的?|中的?|下的?|的))?\s*(?:所有|全部)?(?:文件|有什么|有哪些文件)(?:列表)?[。？?！]?$/,
    intent: list,
  },
  {
    pattern: /^(?<path>\S*?)\s*(?:目录|文件夹)?(?:里|中|下|里面)?(?:都)?有(?:哪些|什么)文件[。？?！]?$/,
    intent: list,
  },

  { pattern: /^(?:run|execute)\s+(?:the\s+)?(?:shell\s+)?command\s*:?\s*(?<command>[\s\S]+)$/i, intent: run },
  { pattern: /^(?:run|execute)\s*:?\s+(?!the\b|my\b|a\b|all\b|it\b)(?<command>[\s\S]+)$/i, intent: run },
  { pattern: /^[$!]\s*(?<command>\S[\s\S]*)$/, intent: run },
  { pattern: /^(?:运行|执行)(?:一下)?(?:命令)?\s*[：:]?\s*(?<command>[\s\S]+)$/, intent: run },

  {
    pattern:
      /^(?:read|open|show|cat|print|display)\b(?:\s+me)?(?:\s+(?:the|my))?(?:\s+(?:file|contents? of|text of))*\s+(?<path>["'`]?[^\s"'`]*[./][^\s"'`]*["'`]?|`[^`]+`|"[^"]+"|[A-Z][A-Za-z]+)(?:\s+file)?[?.!]?$/i,
    intent: read,
  },
  {
    pattern:
      /^what(?:'s|\s+is|\s+does)\s+(?:in\s+)?(?:the\s+)?(?:file\s+)?(?<path>\S*\.\S+?)(?:\s+(?:say|contain))?[?!]?$/i,
    intent: read,
  },
  {
    pattern:
      /^(?:读一下|读取|读|打开|查看|看看|看一下|显示)\s*(?:文件|一下)?\s*(?<path>["'`“]?[^\s"'`“”，。]+["'`”]?)\s*(?:文件|的内容|这个文件)*[。？?！]?$/,
    intent: read,
  },
];

const POLITE =
  /^(?:(?:please|kindly|hermes|hey|ok|now|can you|could you|would you|will you|i want you to|请|请你|麻烦你?|帮我|帮忙|你能不能|你能|可以|能不能|现在)[,，、:\s]*)+(?=\S)/i;

export function intentOf(message: string): Intent {
  const text = message.trim();
  for (const candidate of [text, text.replace(POLITE, "")]) {
    for (const { pattern, intent } of TABLE) {
      const match = pattern.exec(candidate);
      if (match) return intent(match.groups ?? {});
    }
  }
  return { type: "unknown" };
}

function unquote(text: string): string {
  const bare = text.trim().replace(/[?!。？！，,;；]+$/, "");
  const inner = /^(["'`“‘])(.*)["'`”’]$/s.exec(bare)?.[2] ?? bare;
  return inner.replace(/(?<=\w)\.$/, "");
}

function uncode(text: string): string {
  const fenced = /^`{1,3}(?:\w*\n)?([\s\S]*?)`{1,3}[.。]?$/.exec(text.trim());
  return (fenced?.[1] ?? text).trim();
}

/** `here`, `this folder`, `当前目录` are the working directory. */
function folder(text: string): string {
  const path = unquote(text)
    .replace(/^(?:the\s+)?(?:folder|directory)\s+/i, "")
    .replace(/\s+(?:folder|directory)$/i, "")
    .replace(/^the\s+/i, "");
  return /^(|here|this|this (folder|directory)|current|cwd|working|当前|这个|这里|本|此|当前的|这)$/i.test(path)
    ? "."
    : path;
}

// Turns a tool's result into an answer: what it gave, or plainly what went wrong.

const MAX_LINES = 60;
const MAX_CHARS = 4000;

interface Call {
  readonly name: string;
  readonly arguments: string;
}

type Fields = Readonly<Record<string, unknown>>;

export function answerFrom(call: Call, result: string, words: Words): string {
  const args = fieldsOf(call.arguments);
  const fields = fieldsOf(result);
  if (Object.keys(fields).length === 0) return `${words.tool(call.name)}\n\n${fenced(result)}`;
  const failure = failureOf(fields);
  if (failure && call.name !== "terminal") return words.failed(call.name, failure);
  switch (call.name) {
    case "terminal":
      return terminalAnswer(String(args.command ?? ""), fields, words);
    case "search_files":
      return fileList(strings(fields.files), words);
    case "read_file":
      return readAnswer(String(args.path ?? ""), fields, words);
    case "memory":
      return words.remembered(String(args.content ?? ""));
    case "session_search":
      return searchAnswer(String(args.query ?? ""), fields, words);
    case "skill_manage":
      return words.skillMade(String(args.name ?? ""));
    default:
      return `${words.tool(call.name)}\n\n${fenced(result)}`;
  }
}

function terminalAnswer(command: string, fields: Fields, words: Words): string {
  const output = String(fields.output ?? "").trim();
  const exitCode = typeof fields.exit_code === "number" ? fields.exit_code : -1;
  if (fields.status === "blocked" || fields.status === "pending_approval" || exitCode === -1) {
    return words.refused(failureOf(fields) ?? (output || String(fields.status ?? "?")));
  }
  if (command.startsWith("ls -1p -- ") && exitCode === 0) return fileList(output.split("\n").filter(Boolean), words);
  const summary = words.ran(command, exitCode);
  return output ? `${summary}\n\n${fenced(output)}` : `${summary} ${words.noOutput}`;
}

function readAnswer(path: string, fields: Fields, words: Words): string {
  if (typeof fields.content !== "string") return words.failed("read_file", String(fields.message ?? "no content"));
  const text = fields.content.replace(/^ *\d+\|/gm, "").replace(/\n+$/, "");
  return text === "" ? words.emptyFile(path) : `${words.file(path)}\n\n${fenced(text)}`;
}

function fileList(names: readonly string[], words: Words): string {
  if (names.length === 0) return words.empty;
  const shown = names.slice(0, MAX_LINES).map((name) => `- ${name}`);
  const rest = names.length - shown.length;
  return [words.files(names.length), ...shown, ...(rest > 0 ? [words.more(rest)] : [])].join("\n");
}

function searchAnswer(query: string, fields: Fields, words: Words): string {
  const results = Array.isArray(fields.results) ? fields.results.map((entry) => asFields(entry)) : [];
  if (results.length === 0) return words.nothingFound(query);
  const lines = results.map((entry) => {
    const title = String(entry.title ?? entry.session_id ?? "");
    const when = entry.when ?? entry.last_active ?? entry.started_at ?? "";
    const snippet = String(entry.snippet ?? entry.preview ?? "").replace(/\s+/g, " ");
    return `- ${[title, String(when), snippet].filter(Boolean).join(" · ")}`;
  });
  return [words.found(results.length, query), ...lines].join("\n");
}

function failureOf(fields: Fields): string | null {
  if (typeof fields.error === "string" && fields.error !== "") return fields.error;
  if (fields.success === false) return String(fields.message ?? fields.code ?? "failed");
  return null;
}

/** A fence longer than any the text holds. */
function fenced(text: string): string {
  const cut = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\n...` : text;
  const longest = Math.max(2, ...[...cut.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${cut}\n${fence}`;
}

/** The object a text holds or begins with; notes may have been appended after it. */
function fieldsOf(text: string): Fields {
  try {
    return asFields(JSON.parse(text));
  } catch {
    const end = endOfObject(text);
    return end > 0 && end < text.length ? fieldsOf(text.slice(0, end)) : {};
  }
}

function endOfObject(text: string): number {
  let depth = 0;
  let quoted = false;
  for (let index = 0; index < text.length; index++) {
    const char = text[index];
    if (quoted) {
      if (char === "\\") index++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) return index + 1;
  }
  return 0;
}

function asFields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}; // checked just before
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? value.map((item) => (typeof item === "string" ? item : String(asFields(item).path ?? "")))
    : [];
}

// Every sentence of the demo, in both languages.
export interface Words {
  readonly help: string;
  readonly notUnderstood: string;
  noTool(name: string): string;
  failed(name: string, reason: string): string;
  refused(reason: string): string;
  files(count: number): string;
  empty: string;
  more(count: number): string;
  file(path: string): string;
  emptyFile(path: string): string;
  ran(command: string, exitCode: number): string;
  noOutput: string;
  remembered(fact: string): string;
  found(count: number, query: string): string;
  nothingFound(query: string): string;
  skillMade(name: string): string;
  tool(name: string): string;
}

const abilities = [
  "- `list files` or `list files in src`",
  "- `read README.md`",
  "- `run date`",
  "- `remember that I prefer short answers`",
  "- `search past conversations for backups`",
  "- `make a skill called release: 1. run the tests 2. tag`",
].join("\n");

const abilitiesZh = [
  "- `列出文件` 或 `列出 src 的文件`",
  "- `读取 README.md`",
  "- `运行 date`",
  "- `记住：我喜欢简短的回答`",
  "- `搜索以前的对话：备份`",
  "- `创建技能 发布：1. 跑测试 2. 打标签`",
].join("\n");

const connect = "To talk to a real model, run `hermes setup`.";
const connectZh = "要使用真正的模型，请运行 `hermes setup`。";

export const englishWords: Words = {
  help: `I am the built-in demo: no AI and no network, only a few fixed requests that drive the real tools. Try:\n${abilities}\n\n${connect}`,
  notUnderstood: `I am the built-in demo, not an AI, and I did not understand that. I know only these:\n${abilities}\n\n${connect}`,
  noTool: (name) => `I would need the tool \`${name}\` for that, and it is not offered in this session.`,
  failed: (name, reason) => `The tool \`${name}\` reported an error: ${reason}`,
  refused: (reason) => `The command was not run: ${reason}`,
  files: (count) => `${count} ${count === 1 ? "entry" : "entries"}:`,
  empty: "The folder is empty.",
  more: (count) => `... and ${count} more.`,
  file: (path) => `Text of \`${path}\`:`,
  emptyFile: (path) => `\`${path}\` is empty.`,
  ran: (command, exitCode) => `\`${command}\` ended with exit code ${exitCode}.`,
  noOutput: "It printed nothing.",
  remembered: (fact) => `Saved to memory: ${fact}`,
  found: (count, query) =>
    `${count} earlier ${count === 1 ? "conversation" : "conversations"}${query ? ` about "${query}"` : ""}:`,
  nothingFound: (query) =>
    query ? `No earlier conversation mentions "${query}".` : "There are no earlier conversations yet.",
  skillMade: (name) => `The skill \`${name}\` is saved.`,
  tool: (name) => `\`${name}\` answered:`,
};

export const chineseWords: Words = {
  help: `我是内置的演示程序：不是人工智能，也不联网，只能按固定的说法调用真正的工具。可以试试：\n${abilitiesZh}\n\n${connectZh}`,
  notUnderstood: `我是内置的演示程序，不是人工智能，没有听懂这句话。我只认识这些：\n${abilitiesZh}\n\n${connectZh}`,
  noTool: (name) => `这需要工具 \`${name}\`，但本次会话没有提供它。`,
  failed: (name, reason) => `工具 \`${name}\` 报告了错误：${reason}`,
  refused: (reason) => `命令没有运行：${reason}`,
  files: (count) => `共 ${count} 项：`,
  empty: "文件夹是空的。",
  more: (count) => `……还有 ${count} 项。`,
  file: (path) => `\`${path}\` 的内容：`,
  emptyFile: (path) => `\`${path}\` 是空文件。`,
  ran: (command, exitCode) => `\`${command}\` 已结束，退出码 ${exitCode}。`,
  noOutput: "没有输出。",
  remembered: (fact) => `已记住：${fact}`,
  found: (count, query) => (query ? `以前有 ${count} 次对话提到“${query}”：` : `以前的 ${count} 次对话：`),
  nothingFound: (query) => (query ? `以前的对话里没有提到“${query}”。` : "还没有以前的对话。"),
  skillMade: (name) => `技能 \`${name}\` 已保存。`,
  tool: (name) => `\`${name}\` 的结果：`,
};
