// Secrets that show what they are by how they begin.
import type { Marks } from "./marks.ts";

/** A token starts where no word is under way; a line break written as `\n` ends a word. */
const START = String.raw`(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))`;

const prefixes = [
  "sk-",
  "sk_live_",
  "sk_test_",
  "rk_live_",
  "ghp_",
  "gho_",
  "ghu_",
  "ghs_",
  "ghr_",
  "github_pat_",
  "xox[abeprs]-",
  "xapp-",
  "pplx-",
  "bb_live_",
  "dop_v1_",
  "doo_v1_",
  "tvly-",
  "gsk_",
  "retaindb_",
  "rk_test_",
  "dckr_pat_",
  "shp(?:at|ca|pa|ss)_",
  "lin_api_",
  "nvapi-",
  "whsec_",
  "figd_",
  "gl(?:pat|dt|rt|rtr|ptt|ft|cbt|imt|agent|oas|soat)-",
];

/** These also begin ordinary names (`npm_config_registry`, `hf_hub_download`). */
const ambiguousPrefixes = [
  "sk_",
  "fal_",
  "fc-",
  "hf_",
  "r8_",
  "npm_",
  "pypi-",
  "am_",
  "exa_",
  "syt_",
  "hsk-",
  "mem0_",
  "brv_",
  "ntn_",
  "fw_",
];

const TOKEN = new RegExp(
  [
    `${START}(${prefixes.join("|")})[A-Za-z0-9_-]{10,}`,
    `${START}(${ambiguousPrefixes.join("|")})[A-Za-z0-9_-]{10,}`,
    `${START}(AIza|xai-)[A-Za-z0-9_-]{30,}`,
    `${START}(gAAAA)[A-Za-z0-9_-]{20,}={0,2}`,
    `${START}(A[KS]IA)[A-Z0-9]{16}(?![A-Za-z0-9_-])`,
    String.raw`${START}(ya29\.|hvs\.)[A-Za-z0-9_-]{20,}`,
    `${START}(AGE-SECRET-KEY-1)[A-Z0-9]{30,}`,
    String.raw`${START}(SG\.)[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{1,100})?`,
  ].join("|"),
  "g",
);

const ORDINARY_NAME = /^[a-z]{1,12}(?:[_-][a-z]{1,12})+$/;

export function redactTokens(text: string, marks: Marks): string {
  return text.replace(TOKEN, (value: string, clear?: string, ambiguous?: string, ...others: unknown[]) => {
    if (ambiguous !== undefined && ORDINARY_NAME.test(value.slice(ambiguous.length))) return value;
    const prefix = clear ?? ambiguous ?? others.find((group) => typeof group === "string") ?? "";
    return marks.token(value, String(prefix));
  });
}

const WEB_TOKEN = new RegExp(String.raw`${START}eyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+`, "g");

/** JSON web tokens. */
export function redactWebTokens(text: string, marks: Marks): string {
  return text.replace(WEB_TOKEN, (value) => marks.token(value, "eyJ"));
}
