// E-mail: mail comes by IMAP and leaves by SMTP, of any provider.
import { type AdapterHost, type PlatformEntry, PlatformError } from "../../contract.ts";
import { isNear } from "../../web-calls.ts";

type Security = "tls" | "starttls" | "none";

interface MailServer {
  readonly host: string;
  readonly port: number;
  readonly security: Security;
}

export interface MailSettings {
  readonly address: string;
  readonly password: string;
  /** In the From line. */
  readonly name: string;
  readonly imap: MailServer;
  readonly smtp: MailServer;
  readonly pollSeconds: number;
  /** Null: senders are taken at their word. */
  readonly authServer: string | null;
}

const text = (value: unknown) => (value === undefined || value === null ? "" : String(value).trim());

/** Rejects settings with the sentence that `check` gives. */
export function mailSettings(option: AdapterHost["option"]): MailSettings {
  const problem = check(option);
  if (problem !== null) throw new PlatformError("settings", problem, { retryable: false });
  return {
    address: text(option("address", "EMAIL_ADDRESS")).toLowerCase(),
    password: text(option("password", "EMAIL_PASSWORD")),
    name: text(option("from_name", "EMAIL_FROM_NAME")) || "Hermes",
    imap: server(option, "imap"),
    smtp: server(option, "smtp"),
    pollSeconds: Number(option("poll_interval", "EMAIL_POLL_INTERVAL") ?? 15),
    authServer: text(option("auth_server", "EMAIL_AUTH_SERVER")) || null,
  };
}

const DEFAULTS = { imap: { port: 993, security: "tls" }, smtp: { port: 587, security: "starttls" } } as const;
/** A port that means one kind of connection, where nobody says which. */
const BY_PORT: Readonly<Record<number, Security>> = { 143: "starttls", 465: "tls" };

function server(option: AdapterHost["option"], kind: "imap" | "smtp"): MailServer {
  const name = kind.toUpperCase();
  const port = Number(option(`${kind}_port`, `EMAIL_${name}_PORT`) ?? DEFAULTS[kind].port);
  const said = text(option(`${kind}_security`, `EMAIL_${name}_SECURITY`)).toLowerCase();
  const security = said || (BY_PORT[port] ?? DEFAULTS[kind].security);
  return {
    host: text(option(`${kind}_host`, `EMAIL_${name}_HOST`)),
    port,
    security: security as Security, // looked at by `check`
  };
}

function check(option: AdapterHost["option"]): string | null {
  const address = text(option("address", "EMAIL_ADDRESS"));
  if (!isAddress(address)) return `EMAIL_ADDRESS "${address}" is not an e-mail address; set one like bot@example.com`;
  for (const kind of ["imap", "smtp"] as const) {
    const { host, port, security } = server(option, kind);
    const name = `EMAIL_${kind.toUpperCase()}`;
    if (!/^[^\s/@]{1,253}$/.test(host)) return `${name}_HOST "${host}" is not a host; set one like ${kind}.example.com`;
    if (!Number.isInteger(port) || port < 1 || port > 65_535) return `${name}_PORT is not a port; set a number`;
    if (!["tls", "starttls", "none"].includes(security))
      return `${name}_SECURITY is "${security}"; set tls, starttls or none`;
    if (security === "none" && !isNear(host))
      return `${name}_SECURITY is none, which would send the password readable to ${host}; set tls or starttls`;
  }
  const poll = Number(option("poll_interval", "EMAIL_POLL_INTERVAL") ?? 15);
  return poll > 0 ? null : "EMAIL_POLL_INTERVAL must be a number of seconds above 0";
}

const isAddress = (value: string) => /^[^\s@<>",;:()]{1,64}@[^\s@<>",;:()]{1,255}$/.test(value);

const NEEDED = [
  ["address", "EMAIL_ADDRESS"],
  ["password", "EMAIL_PASSWORD"],
  ["imap_host", "EMAIL_IMAP_HOST"],
  ["smtp_host", "EMAIL_SMTP_HOST"],
] as const;

export const entry: PlatformEntry = {
  name: "email",
  label: "Email",
  emoji: "📧",
  maxLength: 50_000,
  lengthUnit: "utf16",
  identity: (option) =>
    NEEDED.every(([key, variable]) => text(option(key, variable)) !== "")
      ? text(option("address", "EMAIL_ADDRESS")).toLowerCase()
      : null,
  variables: [
    { name: "EMAIL_ADDRESS", about: "the address of the agent; give it a mailbox of its own" },
    { name: "EMAIL_PASSWORD", about: "its password; with two-factor login, an app password", secret: true },
    { name: "EMAIL_IMAP_HOST", about: "the server that mail is read from, like imap.example.com" },
    { name: "EMAIL_SMTP_HOST", about: "the server that mail is sent by, like smtp.example.com" },
    {
      name: "EMAIL_ALLOWED_USERS",
      about: "addresses that may write to the agent, separated by commas",
      optional: true,
    },
    { name: "EMAIL_AUTH_SERVER", about: "the name in the Authentication-Results of your server", optional: true },
    { name: "EMAIL_HOME_ADDRESS", about: "where results of scheduled jobs are sent", optional: true },
  ],
  guide: `Give the agent a mailbox of its own: everything that arrives there is read.
Your provider's help names the IMAP and SMTP servers. Gmail and others need an app password.
The sender of a mail can be forged, and the sender decides who may use the agent. If your server checks senders (SPF, DKIM, DMARC), look for
"Authentication-Results: NAME;" in the source of a mail you received and set EMAIL_AUTH_SERVER to NAME: mail that it does not confirm is then
ignored. Without it, anyone who knows an allowed address can pretend to write from there.
Set EMAIL_ALLOWED_USERS: without a list everyone who writes, senders of spam included, gets a pairing code by return.
Answers go to the sender only, not to others who got the mail.`,
  options: [
    ..."address password from_name imap_host imap_port imap_security smtp_host smtp_port smtp_security".split(" "),
    ...["poll_interval", "auth_server"],
  ],
  packages: { imapflow: "2.1.2", nodemailer: "10.5.0", "postal-mime": "4.0.0" },
  check,
  // Some servers keep one of two mails with the same Message-ID, most keep both.
  repeatIsSafe: false,
  hasSubject: true,
  canEdit: false,
  display: {
    tool_progress: "off",
    streaming: false,
    interim_assistant_messages: false,
    long_running_notifications: false,
    busy_ack_detail: false,
  },
  parseTarget: (target) => (isAddress(target) ? { chatId: target.toLowerCase() } : null),
  homeVariable: "EMAIL_HOME_ADDRESS",
  sendsAlone: true,
  // Logging in once more disturbs nobody.
  verify: async (host) => {
    const [{ openEmail }, { trySending }] = [await import("./adapter.ts"), await import("./outgoing.ts")];
    const adapter = await openEmail(host);
    try {
      await adapter.connect(AbortSignal.timeout(30_000));
      await trySending(host, mailSettings(host.option));
      return adapter.account;
    } finally {
      await adapter.disconnect();
    }
  },
  open: async (host) => (await import("./adapter.ts")).openEmail(host),
};
