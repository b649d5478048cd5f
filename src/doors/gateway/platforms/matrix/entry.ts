import type { AdapterHost, PlatformEntry } from "../../contract.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem, callWeb, trimmedUrl } from "../../web-calls.ts";

const text = (value: unknown) => (value === undefined || value === null ? "" : String(value).trim());

function identity(option: AdapterHost["option"]): string | null {
  const server = trimmedUrl(option("homeserver", "MATRIX_HOMESERVER"));
  const token = text(option("token", "MATRIX_ACCESS_TOKEN"));
  const user = text(option("user_id", "MATRIX_USER_ID"));
  const password = text(option("password", "MATRIX_PASSWORD"));
  if (server === "") return null;
  if (token !== "") return token;
  return user !== "" && password !== "" ? `${server} ${user}` : null;
}

/** As a device of its own, which is gone afterwards: a bot that runs keeps its login. */
async function whoLogsIn(server: string, option: AdapterHost["option"]): Promise<string> {
  let token = "";
  const user = text(option("user_id", "MATRIX_USER_ID"));
  const who = await askWho(
    {
      url: `${server}/_matrix/client/v3/login`,
      method: "POST",
      body: {
        ...{ type: "m.login.password", identifier: { type: "m.id.user", user } },
        ...{ password: text(option("password", "MATRIX_PASSWORD")), initial_device_display_name: "Hermes setup" },
      },
    },
    {
      who: ({ user_id: id, access_token: given }) => {
        token = typeof given === "string" ? given : "";
        return named(id);
      },
      words: ({ error }) => error,
      refusal: "The homeserver does not accept MATRIX_USER_ID with MATRIX_PASSWORD",
      refusedBy: [400],
    },
  );
  const headers = { authorization: `Bearer ${token}` };
  await callWeb(`${server}/_matrix/client/v3/logout`, { method: "POST", headers, body: {}, seconds: LOGOUT_SECONDS });
  return who;
}

const LOGOUT_SECONDS = 15;

export const entry: PlatformEntry = {
  name: "matrix",
  label: "Matrix",
  emoji: "🟩",
  maxLength: 4000,
  lengthUnit: "utf16",
  identity,
  variables: [
    { name: "MATRIX_HOMESERVER", about: "Address of your homeserver, such as https://matrix.example.org" },
    { name: "MATRIX_ACCESS_TOKEN", about: "Access token of the bot's account", secret: true },
    { name: "MATRIX_USER_ID", about: "Instead of a token: the account, such as @hermes:example.org", optional: true },
    { name: "MATRIX_PASSWORD", about: "Instead of a token: its password", secret: true, optional: true },
    { name: "MATRIX_DEVICE_ID", about: "Name of the device to log in as, with a password", optional: true },
    {
      name: "MATRIX_ALLOWED_USERS",
      about: "Who may write to it: @you:example.org, separated by commas",
      optional: true,
    },
    { name: "MATRIX_HOME_ROOM", about: "Room for messages that have no chat of their own", optional: true },
  ],
  guide: [
    "Create an account for the bot on your homeserver, and log in to it once with Element.",
    "Its access token is in Element under Settings, Help & About, Advanced. Do not log out there: that ends the token.",
    "Then invite the bot to a room. Encrypted rooms are not supported: turn encryption off when you create the room.",
  ].join("\n"),
  options: [
    ..."homeserver user_id password device_id sync_timeout request_timeout auto_join auto_thread reactions".split(" "),
    ..."read_receipts encryption allowed_rooms free_response_rooms".split(" "),
  ],
  packages: { "matrix-js-sdk": "43.0.0" },
  check: (option) => addressProblem(trimmedUrl(option("homeserver", "MATRIX_HOMESERVER")), "MATRIX_HOMESERVER"),
  repeatIsSafe: true,
  canEdit: true,
  withoutCursor: true,
  display: { tool_progress: "new" },
  homeVariable: "MATRIX_HOME_ROOM",
  sendsAlone: true,
  commandWord: (name) => `!${name}`,
  hint: "You are in a Matrix room. Markdown is shown formatted, with tables and code blocks.",
  parseTarget: (written) => {
    // Ids of rooms and people hold colons themselves; an event begins with a dollar sign, which no server name has.
    const [, chatId, threadId] = /^([!@][^\s$]{1,255}?)(?::(\$\S{1,255}))?$/.exec(written.trim()) ?? [];
    return chatId === undefined ? null : { chatId, ...(threadId === undefined ? {} : { threadId }) };
  },
  verify: async ({ option }) => {
    const token = text(option("token", "MATRIX_ACCESS_TOKEN"));
    const server = trimmedUrl(option("homeserver", "MATRIX_HOMESERVER"));
    if (token === "") return whoLogsIn(server, option);
    return askWho(
      { url: `${server}/_matrix/client/v3/account/whoami`, headers: { authorization: `Bearer ${token}` } },
      {
        who: ({ user_id: id }) => named(id),
        words: ({ error }) => error,
        refusal: "The homeserver does not accept MATRIX_ACCESS_TOKEN",
      },
    );
  },
  open: async (host) => (await import("./adapter.ts")).openMatrix(host),
};
