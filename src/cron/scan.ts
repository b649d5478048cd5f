// What the prompt of a scheduled job must not say: nobody is there to stop it. Asked when a job is made or changed, and again before it runs.
import { scanForThreats } from "../safety/threats/scan.ts";

interface Rule {
  readonly category: string;
  /** Also looked for where skills are attached; the text of a skill may describe attacks. */
  readonly always?: true;
  readonly pattern: RegExp;
  /** A match with this in it is fine. */
  readonly unless?: RegExp;
}

const SECRET = "\\$\\{?\\w{0,60}(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|API)";
const TOP = "(?:bin|boot|dev|etc|home|lib\\w{0,4}|opt|root|sbin|srv|sys|usr|var)";

/** Each one is linear in its text: between two words lies a bounded piece of one line. */
const RULES: readonly Rule[] = [
  {
    ...{ category: "prompt_injection", always: true },
    pattern: /\bignore\s+(?:[\w-]+\s+){0,4}(?:previous|all|above|prior)\s+(?:[\w-]+\s+){0,4}instructions\b/i,
    unless: /\b(?:do not|don't|never)\s+$/i,
  },
  {
    ...{ category: "deception_hide", always: true },
    pattern: /\b(?:do\s+not|don't|never)\s+(?:tell|inform|alert|notify)\s+the\s+user\b/i,
  },
  { ...{ category: "sys_prompt_override", always: true }, pattern: /\bsystem\s+prompt\s+override\b/i },
  {
    ...{ category: "disregard_rules", always: true },
    pattern: /\bdisregard\s+(?:your|all|any)\s+(?:[\w-]+\s+){0,2}(?:instructions|rules|guidelines)\b/i,
  },
  {
    category: "read_secrets",
    pattern: /\bcat\s+(?:(?!\n)[^|;&]){0,200}(?:\.env\b|credentials|\.netrc|\.pgpass|\bid_(?:rsa|ed25519|ecdsa)\b)/i,
  },
  { category: "ssh_backdoor", pattern: /\bauthorized_keys\b/i },
  { category: "sudoers_mod", pattern: /\/etc\/sudoers\b|\bvisudo\b/i },
  {
    category: "destructive_root_rm",
    pattern: new RegExp(
      `\\brm\\s+(?=(?:-{1,2}[\\w-]+\\s+){0,5}(?:-\\w{0,8}r|--recursive))(?=(?:-{1,2}[\\w-]+\\s+){0,5}(?:-\\w{0,8}f|--force))(?:-{1,2}[\\w-]+\\s+){1,6}["']?/(?:\\*|${TOP}/?\\*?)?["']?(?=$|[\\s;&|)])`,
      "im",
    ),
  },
  ...transfers("curl", "exfil_curl_data", "(?:-d|--data[\\w-]{0,20}|-F|--form[\\w-]{0,10})"),
  ...transfers("wget", "exfil_wget_post", "--(?:post|body)-[a-z]{4}"),
  {
    category: "exfil_curl_auth_header",
    pattern: new RegExp(`\\bcurl\\b[^\\n|;&]{0,300}authorization[^\\n|;&]{0,60}${SECRET}[^\\n|;&]{0,300}`, "i"),
    unless: /https?:\/\/api\.github\.com(?=[/\s"']|$)/i,
  },
];

function transfers(program: string, dataCategory: string, option: string): Rule[] {
  const within = "[^\\n|;&]{0,300}";
  return [
    {
      category: `exfil_${program}_url`,
      pattern: new RegExp(`\\b${program}\\b${within}https?://[^\\s"'|;]{0,300}${SECRET}`, "i"),
    },
    {
      category: dataCategory,
      pattern: new RegExp(`\\b${program}\\b${within}\\s${option}[\\s=]?${within}${SECRET}`, "i"),
    },
  ];
}

/** The categories that a prompt falls into; empty: it may be scheduled. */
export function scanPrompt(text: string, { hasSkills = false } = {}): readonly string[] {
  const hits = RULES.flatMap(({ category, always, pattern, unless }) => {
    if (hasSkills && !always) return [];
    const found = pattern.exec(text);
    if (!found) return [];
    const before = text.slice(Math.max(0, found.index - 12), found.index);
    return unless && (unless.test(before) || unless.test(found[0])) ? [] : [category];
  });
  return isInvisible(text) ? [...hits, "invisible"] : hits;
}

const isInvisible = (text: string) => scanForThreats(text, "all").some(({ id }) => id.startsWith("invisible_unicode"));

const OWN_GATEWAY =
  /\bhermes\b(?:\s+-\S+(?:\s+[\w-]+)?){0,3}\s+gateway\s+(?:restart|stop)\b|^\/restart\b|systemctl\b[^\n|;&]{0,60}\b(?:restart|stop|kill)\b[^\n|;&]{0,60}hermes-gateway/im;

/** A job that stops the process it runs in would run for ever, or never end. */
export const stopsOwnGateway = (text: string) => OWN_GATEWAY.test(text);
