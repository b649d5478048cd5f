// XMPP (Jabber): one account, its chats and the rooms it is in.
import type { AdapterHost, PlatformEntry } from "../../contract.ts";
import { listIn } from "../../groups.ts";
import { isNear } from "../../web-calls.ts";
import { toStyled } from "./format.ts";

export interface XmppSettings {
  readonly username: string;
  readonly domain: string;
  readonly resource: string;
  readonly password: string;
  readonly service: string;
  /** Without TLS only where nobody else listens. */
  readonly mayBePlain: boolean;
  /** Each `room@service`, with `/nick` behind it where the nick is another. */
  readonly rooms: readonly { readonly jid: string; readonly nick: string; readonly password?: string }[];
}

const text = (value: unknown) => (value === undefined || value === null ? "" : String(value).trim());

const JID = /^([^\s@/"'<>&:]{1,256})@([^\s@/"'<>&:]{1,256})(?:\/([^\n\r<>&"']{1,256}))?$/;

export function xmppSettings(option: AdapterHost["option"]): XmppSettings {
  const [, username = "", domain = "", resource = "hermes"] = JID.exec(text(option("jid", "XMPP_JID"))) ?? [];
  const service = text(option("service", "XMPP_SERVICE")) || `xmpp://${domain}:5222`;
  const nick = text(option("nickname", "XMPP_NICKNAME")) || username;
  return {
    ...{ username: username.toLowerCase(), domain: domain.toLowerCase(), resource, service },
    password: text(option("password", "XMPP_PASSWORD")),
    mayBePlain: isNear(hostOf(service)),
    rooms: [...listIn(option("rooms", "XMPP_ROOMS"))].map((written) => {
      const [address = "", password] = written.split(/\s+/);
      const [jid = "", own] = address.split("/");
      return { jid: jid.toLowerCase(), nick: own ?? nick, ...(password === undefined ? {} : { password }) };
    }),
  };
}

const hostOf = (service: string) => URL.parse(service.replace(/^xmpps?:/, "http:"))?.hostname ?? "";

function check(option: AdapterHost["option"]): string | null {
  const jid = text(option("jid", "XMPP_JID"));
  if (!JID.test(jid)) return `XMPP_JID "${jid}" is not an address; set one like bot@example.org`;
  const { service, rooms, mayBePlain } = xmppSettings(option);
  if (!/^(?:xmpps?|wss?):\/\/[^\s/@]{1,256}/.test(service) || hostOf(service) === "")
    return `XMPP_SERVICE "${service}" is not an address; set one like xmpp://example.org:5222`;
  if (service.startsWith("ws:") && !mayBePlain)
    return "XMPP_SERVICE begins with ws://, which is only for this machine and private networks; use wss://";
  const wrong = rooms.find((room) => !JID.test(`${room.jid}/${room.nick}`));
  return wrong ? `XMPP_ROOMS "${wrong.jid}" is not a room; write it like room@conference.example.org` : null;
}

export const entry: PlatformEntry = {
  name: "xmpp",
  label: "XMPP",
  emoji: "💬",
  maxLength: 10_000,
  lengthUnit: "utf16",
  identity(option) {
    const { username, domain, password } = xmppSettings(option);
    const jid = text(option("jid", "XMPP_JID"));
    return jid === "" || password === "" ? null : domain === "" ? jid : `${username}@${domain}`;
  },
  variables: [
    { name: "XMPP_JID", about: "the address of the agent, like bot@example.org" },
    { name: "XMPP_PASSWORD", about: "its password", secret: true },
    { name: "XMPP_SERVICE", about: "the server, if it is not xmpp://DOMAIN:5222", optional: true },
    {
      name: "XMPP_ROOMS",
      about: "rooms to join, separated by commas, like team@conference.example.org",
      optional: true,
    },
    { name: "XMPP_NICKNAME", about: "the nick in rooms, if it is not the name in the address", optional: true },
    { name: "XMPP_ALLOWED_USERS", about: "addresses that may use the agent, separated by commas", optional: true },
  ],
  guide: `Create an account for the agent on any XMPP server and set its address and password.
In rooms the agent answers when a message begins with its nick. In a room that hides addresses, people are known by ROOM/NICK, which anyone can take
when they are away; let the room show addresses, or list only people you write with directly.
Messages that are encrypted end to end (OMEMO) cannot be read; turn encryption off for the chat with the agent.
With an archive on the server (XEP-0313) nothing that is written while the gateway is down is lost.`,
  options: ["jid", "password", "service", "rooms", "nickname", "allowed_rooms", "free_response_rooms"],
  packages: { "@xmpp/client": "0.14.0" },
  check,
  format: toStyled,
  repeatIsSafe: false,
  canEdit: true,
  withoutCursor: true,
  display: { tool_progress: "new" },
  parseTarget(target) {
    const [, name, domain, resource] = JID.exec(target) ?? [];
    if (name === undefined || domain === undefined) return null;
    return { chatId: `${name.toLowerCase()}@${domain.toLowerCase()}${resource === undefined ? "" : `/${resource}`}` };
  },
  sendsAlone: true,
  hint: "You answer by XMPP: short texts; *bold*, _italic_, `code` and blocks of code are shown, tables and headings are not.",
  // As a device of its own: a bot that runs stays online.
  verify: async (host) => {
    const { XmppConnection } = await import("./connection.ts");
    const settings = { ...xmppSettings(host.option), resource: "hermes-setup" };
    const connection = await XmppConnection.open(host, settings, { onStanza: () => null, onEnd: () => undefined });
    await connection.close();
    return connection.address;
  },
  open: async (host) => (await import("./adapter.ts")).openXmpp(host),
};
