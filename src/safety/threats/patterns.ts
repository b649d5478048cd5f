// What counts as a threat, in the order it is reported. Sources are written for folded text: lower case, compatibility forms undone.
import { anyOf, chain, expression, type Find, onLine, type Span, words } from "./matchers.ts";

// Instructions hidden in markup: HTML comments, and elements that are not displayed.

const SIDE = 512;
const COMMENT_START = "<!--";

const ORDER = /(?<!\p{L})(?:ignore|override)(?!\p{L})/gu;
const SECRECY = /(?<!\p{L})(?:system|secret|hidden)(?!\p{L})/gu;
const COMPANION = /instruction|prompt|rule|command|message|directive|password/u;
const ANYWHERE = /ignore|override|system|secret|hidden/gu;

// Directives for formatters and spell checkers: `prettier-ignore-start`, `cspell:ignore heron egret`. One word, and for tools that are
// known up to three more.
const FOR_A_TOOL =
  /^<!--\s*(?:[a-z]{2,20}[-:](?:[a-z]{2,12}-)?ignore(?:-[a-z0-9]{1,12}){0,2}|(?:cspell|dprint|markdownlint|prettier|textlint|vale):?\s?-?ignore(?:\s+[\w./-]{1,40}){1,3})\s*$/u;

/** A comment that orders something about orders, or keeps something about them secret. */
const orderInComment: Find = (text) =>
  earliestComment(text, (body) => {
    if (FOR_A_TOOL.test(body)) return [];
    return [...body.matchAll(ORDER), ...(COMPANION.test(body) ? body.matchAll(SECRECY) : [])];
  });

/** The same words in a comment in any company, even inside other words. */
const wordInComment: Find = (text) => earliestComment(text, (body) => [...body.matchAll(ANYWHERE)]);

function earliestComment(text: string, wordsIn: (body: string) => RegExpExecArray[]): Span | null {
  let from = 0;
  for (let close = text.indexOf("-->"); close !== -1; close = text.indexOf("-->", close + 3)) {
    // A comment holds no ">", so its start lies behind the last one; a word may be so far from either end and no further.
    const start = Math.max(from, text.lastIndexOf(">", close) + 1, close - 2 * SIDE - COMMENT_START.length - 16);
    from = close + 3;
    const tail = text.slice(start, close);
    const open = tail.indexOf(COMMENT_START);
    if (open === -1) continue;
    const body = tail.slice(open);
    for (const match of wordsIn(body)) {
      const opened = body.lastIndexOf(COMMENT_START, match.index - COMMENT_START.length);
      const near = opened !== -1 && match.index - opened - COMMENT_START.length <= SIDE;
      if (near && body.length - match.index - match[0].length <= SIDE) {
        return { index: start + open + opened, end: close + 3 };
      }
    }
  }
  return null;
}

const ATTRIBUTES = 2048;
const TAG_PARTS = /<(?:div|span)(?![\w-])|>|["']|(?<![\w-])style\s*=\s*["']?|(?<![\w-])display\s*:\s*none/gu;

/** A div or span whose style attribute says `display: none`. */
const hiddenElement: Find = (text) => {
  let tag: Span | null = null;
  let quote: string | null = null; // of the style attribute we are in; empty when it has none
  for (const { 0: part, index } of text.matchAll(TAG_PARTS)) {
    const end = index + part.length;
    if (part === ">") {
      tag = null;
    } else if (part.startsWith("<")) {
      tag = { index, end };
      quote = null;
    } else if (tag && part.startsWith("style")) {
      quote = index - tag.end <= ATTRIBUTES ? (/["']$/.exec(part)?.[0] ?? "") : null;
    } else if (part === quote) {
      quote = null;
    } else if (tag && quote !== null && part.startsWith("display")) {
      return { index: tag.index, end };
    }
  }
  return null;
};

/** Which texts a pattern is for: every one, what others wrote (`context`), what is written into memory and skills (`strict`). */
export type ThreatScope = "all" | "context" | "strict";

interface ThreatPattern {
  readonly id: string;
  readonly scope: ThreatScope;
  readonly weight: "strong" | "weak";
  /** Texts that lack one of these (`a|b`: both of them) are not searched at all. */
  readonly needs: readonly string[];
  readonly find: Find;
  /** A broader form that counts in scope `strict` too: there the writer can simply choose other words. */
  readonly strict?: Find;
}

const SECRET_NAME = "\\$\\{?[a-z0-9_]*(?:key|token|secret|password|credential|api)";
const OTHER_SECRET_FILES = "credentials|\\.netrc|\\.pgpass|\\.npmrc|\\.pypirc";
const HOME = "(?:~|\\$home|\\$\\{home\\})";
const CHANGE = "(?:update|modify|edit|write|change|append|add\\s+to)\\s";
const C2_PARTS = "server|framework|implant|beacon|payload|listener|teamserver|c2|stager";

export const THREAT_PATTERNS: readonly ThreatPattern[] = [
  {
    id: "prompt_injection",
    scope: "all",
    weight: "strong",
    needs: ["ignore", "instructions"],
    find: words("ignore ... previous|all|above|prior ... instructions"),
  },
  {
    id: "sys_prompt_override",
    scope: "all",
    weight: "strong",
    needs: ["system", "override"],
    find: words("system prompt override"),
  },
  {
    id: "disregard_rules",
    scope: "all",
    weight: "strong",
    needs: ["disregard"],
    find: words("disregard ... your|all|any ... instructions|rules|guidelines"),
  },
  {
    id: "bypass_restrictions",
    scope: "all",
    weight: "strong",
    needs: ["act", "as", "restrictions|limits|rules"],
    find: words("act as if|though ... you ... have_no|don['’]?t_have ... restrictions|limits|rules"),
  },
  {
    id: "html_comment_injection",
    scope: "all",
    weight: "strong",
    needs: ["<!--", "-->"],
    find: orderInComment,
    strict: wordInComment,
  },
  { id: "hidden_div", scope: "all", weight: "strong", needs: ["style", "display", "none"], find: hiddenElement },
  {
    id: "translate_execute",
    scope: "all",
    weight: "strong",
    needs: ["translate", "into"],
    find: chain(
      512,
      "(?<![a-z0-9])translate(?![a-z0-9])",
      "(?<![a-z0-9])into(?![a-z0-9])",
      "(?<![a-z0-9])and\\s+(?:execute|run|eval)(?![a-z0-9])",
    ),
  },
  {
    id: "deception_hide",
    scope: "all",
    weight: "strong",
    needs: ["tell"],
    find: words("do not ... tell ... the user|users"),
  },
  {
    id: "role_hijack",
    scope: "context",
    weight: "strong",
    needs: ["you", "now"],
    find: words("you are ... now a|an|the "),
    strict: words("you are ... now "),
  },
  {
    id: "role_pretend",
    scope: "context",
    weight: "weak",
    needs: ["pretend"],
    find: words("pretend ... you_are|to_be"),
  },
  {
    id: "leak_system_prompt",
    scope: "context",
    weight: "strong",
    needs: ["output", "prompt"],
    find: words("output ... system|initial prompt"),
  },
  {
    id: "remove_filters",
    scope: "context",
    weight: "strong",
    needs: ["without"],
    find: words("respond|answer|reply without ... restrictions|limitations|filters|safety"),
  },
  {
    id: "fake_update",
    scope: "context",
    weight: "weak",
    needs: ["have", "been", "updated|upgraded|patched"],
    find: words("you have been ... updated|upgraded|patched to"),
  },
  {
    id: "identity_override",
    scope: "context",
    weight: "strong",
    needs: ["yourself"],
    find: words("name|rename yourself *"),
  },
  {
    id: "c2_node_registration",
    scope: "context",
    weight: "weak",
    needs: ["register", "node"],
    find: words("register as? a? node(?![-\\x5f])"),
  },
  {
    id: "c2_heartbeat",
    scope: "context",
    weight: "weak",
    needs: ["heartbeat|beacon|check"],
    find: anyOf(
      words("heartbeat|beacon to|with"),
      expression(
        "(?<![a-z0-9])check[\\s-]in\\s+(?:with|to)\\s+(?:\\S{1,256}\\s+){0,3}(?:(?:server|controller|c2|node|host)(?![a-z0-9])|https?://)",
      ),
    ),
    strict: words("check[\\s-]in to|with"),
  },
  {
    id: "c2_task_pull",
    scope: "context",
    weight: "weak",
    needs: ["pull", "task"],
    find: words("pull down? new? task|tasks|tasking"),
  },
  {
    id: "c2_network_connect",
    scope: "context",
    weight: "weak",
    needs: ["network"],
    find: words("connect to the network"),
  },
  {
    id: "forced_action",
    scope: "context",
    weight: "weak",
    needs: ["must", "register|connect|report|beacon"],
    find: words("you must ..3 register|connect|report|beacon"),
  },
  {
    id: "anti_forensic_oneliner",
    scope: "context",
    weight: "weak",
    needs: ["liner"],
    find: words("only use one[\\s-]liner|one[\\s-]liners"),
  },
  {
    id: "anti_forensic_disk",
    scope: "context",
    weight: "weak",
    needs: ["never", "disk"],
    find: words("never ... create|write ... script|scripts|file|files ... disk"),
  },
  {
    id: "env_var_unset_agent",
    scope: "context",
    weight: "strong",
    needs: ["unset"],
    find: expression("(?<![a-z0-9])unset\\s+(?:-[a-z]\\s+)?[a-z0-9_]*(?:claude|codex|hermes|agent|openai|anthropic)"),
  },
  {
    id: "known_c2_framework",
    scope: "context",
    weight: "weak",
    needs: ["cobalt|metasploit|brainworm|sliver|havoc|mythic"],
    find: anyOf(words("cobalt_strike|metasploit|brainworm"), words(`sliver|havoc|mythic ..1 ${C2_PARTS}`)),
    strict: words("sliver|havoc|mythic"),
  },
  {
    id: "c2_explicit",
    scope: "context",
    weight: "weak",
    needs: ["c2"],
    find: words("c2 server|channel|infrastructure|beacon"),
  },
  {
    id: "c2_explicit_long",
    scope: "context",
    weight: "weak",
    needs: ["command", "control"],
    find: words("command and control"),
  },
  {
    id: "exfil_curl",
    scope: "all",
    weight: "strong",
    needs: ["curl", "$"],
    find: onLine("curl(?![a-z])", SECRET_NAME),
  },
  {
    id: "exfil_wget",
    scope: "all",
    weight: "strong",
    needs: ["wget", "$"],
    find: onLine("wget(?![a-z])", SECRET_NAME),
  },
  {
    id: "read_secrets",
    scope: "all",
    weight: "strong",
    needs: ["cat", ".env|credentials|.netrc|.pgpass|.npmrc|.pypirc"],
    find: onLine(
      "(?<![a-z0-9_-])cat(?![a-z0-9_-])",
      `\\.env(?![a-z]|\\.(?:example|sample|template))|\\.envrc|${OTHER_SECRET_FILES}`,
    ),
    strict: onLine("cat(?=[^\\S\\n])", `\\.env|${OTHER_SECRET_FILES}`),
  },
  {
    id: "send_to_url",
    scope: "strict",
    weight: "strong",
    needs: ["http"],
    find: chain(2048, "(?<![a-z0-9])(?:send|post|upload|transmit)(?![a-z0-9])", "(?<![a-z0-9])(?:to|at)\\s+https?://"),
  },
  {
    id: "context_exfil",
    scope: "strict",
    weight: "strong",
    needs: ["conversation|chat|messages|context"],
    find: words(
      "include|output|print|share ... conversation|conversations|chat_history|previous_messages|full_context|entire_context",
    ),
  },
  {
    id: "ssh_backdoor",
    scope: "strict",
    weight: "strong",
    needs: ["authorized_keys"],
    find: expression("authorized_keys"),
  },
  { id: "ssh_access", scope: "strict", weight: "strong", needs: [".ssh"], find: expression(`${HOME}/\\.ssh`) },
  {
    id: "hermes_env",
    scope: "strict",
    weight: "strong",
    needs: [".hermes/.env"],
    find: expression(`${HOME}/\\.hermes/\\.env`),
  },
  {
    id: "agent_config_mod",
    scope: "strict",
    weight: "strong",
    needs: [".md|rules"],
    find: chain(2048, CHANGE, "agents\\.md|claude\\.md|\\.cursorrules|\\.clinerules"),
  },
  {
    id: "hermes_config_mod",
    scope: "strict",
    weight: "strong",
    needs: [".hermes/"],
    find: chain(2048, CHANGE, "\\.hermes/(?:config\\.yaml|soul\\.md)"),
  },
  {
    id: "hardcoded_secret",
    scope: "strict",
    weight: "strong",
    needs: ["key|token|secret|password"],
    find: expression("(?:api[\\s_-]?key|token|secret|password)[\"']?\\s*[=:]\\s*[\"'`][a-z0-9+/=_-]{20}"),
  },
];
