// What counts as a threat, in the order it is reported. Sources are written for folded text: lower case, compatibility forms undone.

import { claims } from "./claims.ts";
import { abroad } from "./languages.ts";
import { carriesOut, chatTemplate, hiddenElement, orderInComment, systemTag, wordInComment } from "./markup.ts";
import { anyOf, chain, expression, type Find, onLine, words } from "./matchers.ts";
import { paraphrases } from "./paraphrases.ts";

/** Which texts a pattern is for: every one, what others wrote (`context`), what is written into memory and skills (`strict`). */
export type ThreatScope = "all" | "context" | "strict";

export interface ThreatPattern {
  readonly id: string;
  readonly scope: ThreatScope;
  readonly weight: "strong" | "weak";
  /** Texts that lack one of these (`a|b`: both of them) are not searched at all. */
  readonly needs: readonly string[];
  readonly find: Find;
  /** Marks that count only as they are written: what talks about them puts them into code signs. */
  readonly asWritten?: true;
  /** The same in other languages, searched in every text. */
  readonly abroad?: Find;
  /** The sentence where a list, a table, punctuation or single letters divide it: closer than `find`, or neighbours become one. */
  readonly divided?: Find;
  /** A broader form that counts in scope `strict` too: there the writer can simply choose other words. */
  readonly strict?: Find;
}

const SECRET_NAME = "\\$\\{?[a-z0-9_]*(?:key|token|secret|password|credential|api)";
const OTHER_SECRET_FILES = "credentials|\\.netrc|\\.pgpass|\\.npmrc|\\.pypirc";
const HOME = "(?:~|\\$home|\\$\\{home\\})";
const CHANGE = "(?:update|modify|edit|write|change|append|add\\s+to)\\s";
const C2_PARTS = "server|framework|implant|beacon|payload|listener|teamserver|c2|stager";

/** What may stand between the words of a sentence that a list or a table divides; any word would join what does not belong together. */
const SMALL_WORDS =
  "(?:(?:of|the|your|these|those|my|our|and|or|any|every|each|one|i|mean|please|now|just|kindly|all|previous|prior|above|earlier|given)\\s+){0,8}";

export const THREAT_PATTERNS: readonly ThreatPattern[] = [
  {
    id: "prompt_injection",
    scope: "all",
    weight: "strong",
    needs: ["ignore|disregard|forget", "instruction|directives|rules|prompt|everything|anything"],
    find: anyOf(
      words("ignore ... previous|all|above|prior|earlier|preceding ... instructions|instruction|directives"),
      words("disregard|forget ... previous|above|prior|earlier|preceding ... instructions|instruction|directives"),
      words("ignore|disregard|forget ..3 previous|above|prior|earlier|preceding ..1 rules|prompt|prompts"),
      words("forget|disregard everything|anything ..3 above|before|earlier|previously|prior ..3 and|you|your"),
    ),
    abroad: anyOf(abroad.ignore, paraphrases.ignore),
    divided: expression(
      `(?<![a-z0-9])(?:ignore|disregard|forget)\\s+${SMALL_WORDS}(?:all|previous|above|prior|earlier|preceding)\\s+${SMALL_WORDS}(?:instructions?|directives)(?![a-z0-9])`,
    ),
  },
  {
    id: "sys_prompt_override",
    scope: "all",
    weight: "strong",
    needs: ["system", "override"],
    find: words("system prompt override"),
    divided: words("system prompt override"),
  },
  {
    id: "disregard_rules",
    scope: "all",
    weight: "strong",
    needs: ["disregard"],
    find: words("disregard ... your|all|any ... instructions|rules|guidelines"),
    divided: expression(
      `(?<![a-z0-9])disregard\\s+${SMALL_WORDS}(?:your|all|any)\\s+${SMALL_WORDS}(?:instructions|rules|guidelines)(?![a-z0-9])`,
    ),
  },
  {
    id: "bypass_restrictions",
    scope: "all",
    weight: "strong",
    needs: ["act", "as", "restrictions|limits|rules"],
    find: words("act as if|though ... you ... have_no|don['’]?t_have ... restrictions|limits|rules"),
    abroad: abroad.bypass,
  },
  {
    id: "html_comment_injection",
    scope: "all",
    weight: "strong",
    needs: ["<!--|]: #|]: <>"],
    find: orderInComment,
    strict: wordInComment,
  },
  { id: "hidden_div", scope: "all", weight: "strong", needs: ["style|hidden"], find: hiddenElement },
  {
    id: "chat_template",
    scope: "context",
    weight: "strong",
    needs: [
      ">|[inst]",
      "im_start|im_end|<<sys>>|header_id|system|developer|<|e|_of_turn|</s>|[/tool|[/avail|</tool|</func|</untr|</sear|</web|</retr|</ext",
    ],
    asWritten: true,
    find: chatTemplate,
  },
  {
    id: "system_tag",
    scope: "context",
    weight: "strong",
    needs: ["<system|<developer|[system|<ai|<llm|<assistant|<agent|<admin|<model|<hidden|<secret"],
    asWritten: true,
    find: systemTag,
  },
  {
    id: "addressed_to_model",
    scope: "context",
    weight: "strong",
    needs: [],
    find: anyOf(paraphrases.notes, claims.hidden),
  },
  {
    id: "claimed_approval",
    scope: "context",
    weight: "strong",
    needs: [],
    find: claims.approved,
  },
  {
    id: "markdown_exfil",
    scope: "context",
    weight: "strong",
    needs: ["](|<img", "http"],
    asWritten: true,
    find: carriesOut,
  },
  {
    id: "decode_execute",
    scope: "context",
    weight: "strong",
    needs: [],
    find: paraphrases.decode,
  },
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
    abroad: anyOf(abroad.hide, paraphrases.hide),
    // Not "if tests do not pass, tell the user".
    divided: words("do not ever? tell the user|users"),
  },
  {
    id: "role_hijack",
    scope: "context",
    weight: "strong",
    needs: ["you", "now"],
    find: words("you are ... now a|an|the "),
    abroad: abroad.role,
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
    needs: ["output|reveal|print|repeat", "prompt"],
    find: anyOf(
      words("output ... system|initial prompt"),
      words("reveal|print|repeat ..5 your ..2 system|initial|hidden|full prompt"),
    ),
    abroad: abroad.leak,
    divided: words("output|reveal|print your full? system|initial prompt"),
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
