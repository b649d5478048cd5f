// Where a key goes that a skill reads: to the service it belongs to, or somewhere else.
import type { Lines } from "./patterns.ts";

// Words of a variable's name that say nothing about whose it is.
const GENERIC = new Set(
  `key keys token secret password api access auth bearer personal pat service role client id app user prod dev test live my account
  credential credentials bot bearer admin default the`.split(/\s+/),
);

/** Keys worth stealing: these go to exactly this service. */
const SERVICES: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["anthropic"],
  aws: ["amazonaws", "aws"],
  azure: ["azure", "microsoft"],
  claude: ["anthropic"],
  cloudflare: ["cloudflare"],
  discord: ["discord"],
  gemini: ["googleapis", "google"],
  gh: ["github"],
  github: ["github"],
  gitlab: ["gitlab"],
  google: ["googleapis", "google"],
  hermes: [],
  hf: ["huggingface"],
  huggingface: ["huggingface"],
  npm: ["npmjs"],
  openai: ["openai"],
  openrouter: ["openrouter"],
  pypi: ["pypi"],
  slack: ["slack"],
  ssh: [],
  stripe: ["stripe"],
  telegram: ["telegram"],
};

const HEADER = "authorization|[a-z-]{0,20}(?:api-?key|token|auth)";
/** A variable where a service expects its key. */
const GIVEN = [
  `(?:-h|--header)[ =]["']?(?:${HEADER})\\s*:\\s*(?:(?:bearer|token|basic|key|apikey)\\s+)?["']?\\$\\{?([a-z0-9_]+)\\}?`,
  `(?:-u|--user)[ =]["']?(?:[^\\s"'$:]{0,60}:)?\\$\\{?([a-z0-9_]+)\\}?`,
  `["']?(?:${HEADER})["']?\\s*:\\s*["'\`](?:(?:bearer|token|basic)\\s+)?\\$\\{([a-z0-9_.]+)\\}`,
  `[?&](?:key|api_?key|access_token|token|appid)=\\$\\{?([a-z0-9_.]+)\\}?`,
];
const GIVEN_KEY = new RegExp(GIVEN.join("|"), "gu");
const HOSTS = /https?:\/\/([^\s"'`/\\?#:]+)/gu;

/** Takes out the variables that are sent to whom they belong, command by command. */
export function sendsToItsService(folded: string): string {
  return folded
    .split(/(&&|\|\||[;|])/u)
    .map((command) => {
      const hosts = [...command.matchAll(HOSTS)].map(([, host = ""]) => host);
      return command.replaceAll(GIVEN_KEY, (given, ...names: unknown[]) => {
        const name = names.slice(0, GIVEN.length).find((one) => typeof one === "string");
        return typeof name === "string" && isItsOwn(name, hosts, command) ? " " : given;
      });
    })
    .join("");
}

function isItsOwn(variable: string, hosts: readonly string[], command: string): boolean {
  const words = (variable.split(".").at(-1) ?? "").split("_").filter((word) => word !== "" && !GENERIC.has(word));
  const known = words.filter((word) => Object.hasOwn(SERVICES, word));
  if (hosts.length === 0)
    return known.length === 0 && words.some((word) => command.includes(`$${word}_`) || command.includes(`\${${word}_`));
  return hosts.every((host) => {
    const [domain = "", ending = ""] = host.split(".").slice(-2);
    if (host === "localhost" || host === "127.0.0.1") return true;
    if (known.length > 0)
      return known.some((word) => SERVICES[word]?.includes(domain) || `${domain}.${ending}` === word);
    return words.length === 0 || words.some((word) => domain.includes(word)) || /\$/u.test(host);
  });
}

const READ = /os\.(?:environ\.get\(|environ\[|getenv\()\s*["']([A-Za-z0-9_]+)["']\s*(?:,[^)\n]{0,60})?[)\]]/g;
const COPIED = /os\.environ(?:\.copy\(\)|\.items\(\))?(?![\w.[])/g;
const NAMED =
  /os\.(?:environ\.get|getenv)\(\s*[a-z_]\w{0,40}\s*(?:,[^)\n]{0,60})?\)|os\.environ\[\s*[a-z_]\w{0,40}\s*\]/g;

/** Python that reads a variable and neither shows it nor sends it anywhere but as a key. */
export function staysInside(folded: string, { raw, file }: Lines): string {
  const assigned = /^\s*(?:export\s+)?([A-Za-z_][\w.]*)\s*(?::\s*[^=\n]{1,60})?=(?!=)/.exec(raw)?.[1];
  const isKept = assigned === undefined ? isUsedInPlace(raw) : !leaks(assigned, file);
  if (!isKept) return folded;
  const isCopy = /(?:^|[\s({,])[\w.]{0,60}env[\w.]{0,60}\s{0,20}(?::[^=\n]{1,60})?=/.test(raw);
  const plain = raw.replaceAll(READ, " ").replaceAll(NAMED, " ");
  return (isCopy ? plain.replaceAll(COPIED, " ") : plain).toLowerCase();
}

/** As the argument of that name, in a header, as a question whether it is there, or handed back by a function. */
function isUsedInPlace(raw: string): boolean {
  if (SHOWS.test(raw) || /(?:data|json|files|params)\s*=/.test(raw)) return false;
  return /^\s*(?:return|if|elif|assert|while)\b|\b\w{0,60}(?:key|token|secret|password|auth|env)\w{0,60}\s{0,20}=\s*[^=]|["'](?:authorization|[\w-]{0,60}key|[\w-]{0,60}token)["']\s*:/i.test(
    raw,
  );
}

const SHOWS =
  /(?:\bprint|\blog(?:ger|ging)?\.\w+|\.write(?:_text|_bytes|lines)?|json\.dumps?|\bsend(?:all|to|mail)?|\burlopen|\bupload\w*|b64encode|os\.system|popen)\s*\(/;

/** The name's value is shown, written, or sent as something other than a key. */
function leaks(name: string, file: readonly string[]): boolean {
  const value = `(?<![\\w."'])${name.replaceAll(/[.]/g, "\\.")}(?![\\w"'=])`;
  const shown = new RegExp(`${SHOWS.source}[^\\n]{0,200}${value}`);
  const sent = new RegExp(`(?:data|json|files|content)\\s*=\\s*[^\\n]{0,120}${value}`);
  const inAddress = new RegExp(`https?://[^\\n"']{0,200}\\{${name}\\}`);
  const asKey = new RegExp(`[?&](?:key|api_?key|access_token|token|appid)=\\{${name}\\}`);
  return file.some((line) => {
    if (!line.includes(name)) return false;
    const code = withoutTexts(line);
    return shown.test(code) || sent.test(code) || (inAddress.test(line) && !asKey.test(line));
  });
}

/** Words in a text are no names; what an f-string puts in is. */
function withoutTexts(line: string): string {
  return line.replaceAll(
    /([A-Za-z]{0,2})("(?:[^"\\]|\\.){0,800}"|'(?:[^'\\]|\\.){0,800}')/g,
    (_, prefix: string, text: string) =>
      /f/i.test(prefix) ? ` ${(text.match(/\{[^{}]*\}/g) ?? []).join(" ").replaceAll(/[{}]/g, " ")} ` : '""',
  );
}
