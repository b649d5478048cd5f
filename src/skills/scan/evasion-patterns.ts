// Other ways to the same ends: what is downloaded and run without a pipe, shells in other languages, rarer hiding places of keys.
import { anyOf, expression, onLine, words } from "../../safety/threats/matchers.ts";
import { COMMAND, END, rows, START } from "./pattern.ts";

const DOWNLOAD = "(?:curl|wget)(?=\\s)";
const POWERSHELL_GET = `${START}(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)${END}`;
const POWERSHELL_RUN = `${START}(?:iex|invoke-expression)${END}`;

export const EVASION = rows(
  "evasion",
  [
    "download_substitution",
    "critical",
    expression(`(?:<\\(|-c\\s{0,4}["']?\\$\\(|eval\\s{1,4}["']?\\$\\()\\s{0,4}${DOWNLOAD}`),
  ],
  [
    "download_then_run",
    "high",
    onLine(`${COMMAND}${DOWNLOAD}`, `(?:&&|;)\\s{0,4}(?:(?:ba|z|da)?sh|python[0-9.]{0,4}|chmod\\s+\\+x)(?=\\s)`),
  ],
  [
    "powershell_download",
    "critical",
    anyOf(onLine(POWERSHELL_RUN, POWERSHELL_GET), onLine(POWERSHELL_GET, POWERSHELL_RUN)),
  ],
  ["powershell_encoded", "critical", expression("powershell[^\\n]{0,80}\\s-e(?:nc|ncodedcommand)?\\s+[a-z0-9+/=]{8}")],
  [
    "secret_file_upload",
    "critical",
    onLine(`${COMMAND}curl(?=\\s)`, "@[^\\s]{0,200}(?:\\.env(?![a-z])|credentials|\\.netrc|id_rsa|id_ed25519)"),
  ],
  ["config_credentials", "high", expression("(?:~|\\$home|\\$\\{home\\})/\\.config/(?:gh|gcloud|op)(?![a-z0-9_])")],
  ["keychain_access", "high", expression("security\\s+find-(?:generic|internet)-password")],
  ["fifo_shell", "critical", onLine("mkfifo", `${COMMAND}(?:nc|ncat|telnet)(?=\\s)`)],
  ["socket_open", "high", expression(`${START}(?:tcpsocket\\.(?:new|open)|fsockopen)\\(`)],
  ["ssh_remote_forward", "high", expression(`${COMMAND}ssh\\s+(?:-[a-z]{1,8}\\s+){0,3}-[a-z]{0,6}r\\s*[0-9]{1,5}:`)],
  [
    "child_process_import",
    "high",
    expression("(?:from|require\\(|import\\()\\s{0,4}[\"'](?:node:)?child_process[\"']"),
  ],
  ["tilde_rm", "critical", expression(`${COMMAND}rm\\s+-[a-z]{0,6}r[a-z]{0,6}\\s+["']?~(?:/\\*?)?["']?(?=\\s|$)`)],
  ["find_root_delete", "critical", expression(`${COMMAND}find\\s+/\\s[^\\n]{0,200}-delete`)],
  ["fork_bomb", "critical", expression(":\\(\\)\\s{0,3}\\{\\s{0,3}:\\|:&")],
  ["cron_file", "high", expression("/etc/cron\\.[a-z]{1,8}/")],
  ["windows_autostart", "high", expression("schtasks\\s+/create|currentversion\\\\run")],
  [
    "conceal_from_user",
    "critical",
    anyOf(words("not|never mention|reveal|disclose ... to the user"), words("without telling|informing the user")),
  ],
  ["forget_instructions", "high", words("forget everything|all ... told|instructions|rules|before")],
);
