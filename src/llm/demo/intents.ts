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
