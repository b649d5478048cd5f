// IRC: one nick on one server, in its channels and in private messages.
import type { AdapterHost, PlatformEntry } from "../../contract.ts";
import { isYes, listIn } from "../../groups.ts";
import { isNear } from "../../web-calls.ts";
import { toPlain } from "./format.ts";
import { isChannel, isName } from "./protocol.ts";

export const LINE_BYTES = 400;
const VERIFY_MS = 30_000;

export interface IrcSettings {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly nick: string;
  /** Each as it is joined: a name, and a key behind a blank if it needs one. */
  readonly channels: readonly string[];
  readonly serverPassword: string;
  readonly nickservPassword: string;
  readonly floodSeconds: number;
  /** What a person is known by: the nick, which anybody may take, or the account they are logged in to. */
  readonly identifyBy: "nick" | "account";
}

const text = (value: unknown) => (value === undefined || value === null ? "" : String(value).trim());

export function ircSettings(option: AdapterHost["option"]): IrcSettings {
  const tls = isYes(option("use_tls", "IRC_USE_TLS"), true);
  return {
    host: text(option("server", "IRC_SERVER")),
    port: Number(option("port", "IRC_PORT") ?? (tls ? 6697 : 6667)),
    tls,
    nick: text(option("nickname", "IRC_NICKNAME")) || "hermes-bot",
    channels: [...listIn(option("channel", "IRC_CHANNEL"))],
    serverPassword: text(option("server_password", "IRC_SERVER_PASSWORD")),
    nickservPassword: text(option("nickserv_password", "IRC_NICKSERV_PASSWORD")),
    floodSeconds: Number(option("flood_delay", "IRC_FLOOD_DELAY") ?? 1),
    identifyBy: text(option("identify_by", "IRC_IDENTIFY_BY")).toLowerCase() === "account" ? "account" : "nick",
  };
}

function check(option: AdapterHost["option"]): string | null {
  const { host, port, tls, nick, channels, floodSeconds } = ircSettings(option);
  if (!/^[^\s/@]{1,253}$/.test(host)) return `IRC_SERVER "${host}" is not a host; set one like irc.example.org`;
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return "IRC_PORT is not a port; set a number";
  if (!tls && !isNear(host))
    return `IRC_USE_TLS is off, which is only for this machine and private networks; ${host} is neither`;
  if (!isName(nick) || isChannel(nick)) return `IRC_NICKNAME "${nick}" is not a nick; use letters, digits, - and _`;
  const wrong = channels.find((channel) => !isChannel(channel) || !isName(channel.split(/\s+/)[0] ?? ""));
  if (wrong !== undefined) return `IRC_CHANNEL "${wrong}" is not a channel; write it like #channel`;
  return floodSeconds >= 0 ? null : "flood_delay must be a number of seconds";
}

export const entry: PlatformEntry = {
  name: "irc",
  label: "IRC",
  emoji: "💬",
  maxLength: LINE_BYTES,
  lengthUnit: "bytes",
  identity(option) {
    const { host, port, nick } = ircSettings(option);
    return host === "" ? null : `${nick.toLowerCase()}@${host.toLowerCase()}:${port}`;
  },
  variables: [
    { name: "IRC_SERVER", about: "the server, like irc.example.org" },
    { name: "IRC_NICKNAME", about: "the nick of the agent (hermes-bot)", optional: true },
    { name: "IRC_CHANNEL", about: "channels to join, separated by commas, like #one,#two", optional: true },
    { name: "IRC_NICKSERV_PASSWORD", about: "the password of the nick's account", secret: true, optional: true },
    { name: "IRC_SERVER_PASSWORD", about: "the password of the server, if it has one", secret: true, optional: true },
    {
      name: "IRC_ALLOWED_USERS",
      about: "nicks (or accounts) that may use the agent, separated by commas",
      optional: true,
    },
    { name: "IRC_IDENTIFY_BY", about: "account: know people by their account instead of their nick", optional: true },
  ],
  guide: `Register the nick of the agent with the network (usually /msg NickServ REGISTER ...) and set IRC_NICKSERV_PASSWORD.
In channels the agent answers when a line begins with its nick ("hermes-bot: hello"); private messages are always for it.
Anyone can take a nick whose owner is away. On a network with accounts set IRC_IDENTIFY_BY=account and list accounts in IRC_ALLOWED_USERS.
Commands begin with ! here (!new, !help), because clients keep / for themselves. What is written while the gateway is down is lost: IRC keeps nothing.`,
  options: [
    ..."server port use_tls nickname channel server_password nickserv_password flood_delay identify_by".split(" "),
    ...["allowed_channels", "free_response_channels"],
  ],
  check,
  format: toPlain,
  repeatIsSafe: false,
  canEdit: false,
  // Every line is a message of its own, one a second.
  display: { tool_progress: "off", streaming: false, interim_assistant_messages: false },
  parseTarget: (target) => (isName(target) ? { chatId: target } : null),
  sendsAlone: false,
  commandWord: (name) => `!${name}`,
  hint: "You answer on IRC: plain text without Markdown, in as few lines as possible; every line is a message of its own.",
  // Under another nick if ours is in use: the bot that has it is left alone.
  verify: async (host) => {
    const { IrcConnection } = await import("./connection.ts");
    const settings = ircSettings(host.option);
    const over = AbortSignal.timeout(VERIFY_MS);
    const ports = { clock: host.clock, log: host.log, signal: over, onLine: () => undefined, onEnd: () => undefined };
    const connection = await IrcConnection.open(settings, ports);
    const { nick, isLoggedIn } = connection;
    connection.close();
    return `${nick} on ${settings.host}${isLoggedIn ? ", logged in" : ""}`;
  },
  open: async (host) => (await import("./adapter.ts")).openIrc(host),
};
