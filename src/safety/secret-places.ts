// The one table of places in a user's home directory that hold keys, passwords or what was typed. The file tools, the rules for commands and the
// sandbox all read it; a new program with a key of its own is one word here.

export interface SecretPlace {
  /** Below the home directory. */
  readonly path: string;
  /** A directory stands for everything below it. */
  readonly type: "file" | "directory";
  /** Besides its keys it has settings that run something later, so that people do let an agent change it when asked. */
  readonly runsLater: boolean;
}

const KEY_FILES = `
  .netrc .authinfo .pgpass .npmrc .pypirc .git-credentials .config/git/credentials .dockercfg .vault-token .boto .s3cfg .databrickscfg .sentryclirc
  .msmtprc .fetchmailrc .smbcredentials .gem/credentials .cargo/credentials .cargo/credentials.toml .config/containers/auth.json .Xauthority
  .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .cache/huggingface/token .huggingface/token .kaggle/kaggle.json
  .bash_history .zsh_history .psql_history .mysql_history .python_history .node_repl_history .local/share/fish/fish_history`;

const KEY_DIRECTORIES = `
  .ssh .aws .gnupg .kube .docker .azure .config/gh .config/hub .config/gcloud .config/glab-cli .config/doctl .config/hcloud .config/heroku
  .config/netlify .config/ngrok .config/stripe .config/configstore .config/github-copilot .config/op .config/rclone .config/solana .config/sops
  .password-store .local/share/keyrings .local/share/kwalletd .config/keepassxc .config/Bitwarden .terraform.d .pulumi .fly .oci .ngrok2 .cloudflared
  .bitcoin .ethereum .electrum`;

const SETTING_FILES = ".my.cnf .claude.json .m2/settings.xml .gradle/gradle.properties .yarnrc.yml";

const SETTING_DIRECTORIES =
  ".mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge";

const rows = (names: string, type: SecretPlace["type"], { runsLater }: Pick<SecretPlace, "runsLater">): SecretPlace[] =>
  names
    .trim()
    .split(/\s+/)
    .map((path) => ({ path, type, runsLater }));

export const SECRET_PLACES: readonly SecretPlace[] = [
  ...rows(KEY_FILES, "file", { runsLater: false }),
  ...rows(KEY_DIRECTORIES, "directory", { runsLater: false }),
  ...rows(SETTING_FILES, "file", { runsLater: true }),
  ...rows(SETTING_DIRECTORIES, "directory", { runsLater: true }),
];
