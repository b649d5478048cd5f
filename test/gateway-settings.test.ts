// What settings do to chats: broken platforms beside a good one, rights, hooks, another model, new conversations, homes of the original.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { answerTurns, lastSaid, ModelServer, startGateway, typed, until } from "./support/gateway-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

interface World {
  readonly model: ModelServer;
  readonly paper: PaperServer;
  readonly home: TempHome;
  told(chat: string, part: string): Promise<void>;
}

async function inWorld(options: Parameters<typeof paperHome>[2], work: (world: World) => Promise<void>): Promise<void> {
  const model = await ModelServer.start();
  const paper = await PaperServer.start();
  const home = await paperHome(model, paper, options);
  answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
  const told = (chat: string, part: string) =>
    until(`${chat} is told "${part}"; there: ${JSON.stringify(paper.textsOf(chat))}`, () =>
      paper.textsOf(chat).some((text) => text.includes(part)),
    );
  try {
    await work({ model, paper, home, told });
  } finally {
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  }
}

const entryOf = (home: TempHome, chat: string): Record<string, unknown> => {
  const [row] = rowsOf(
    home,
    `SELECT entry_json FROM gateway_routing WHERE session_key = 'agent:main:paper:dm:${chat}'`,
  );
  return JSON.parse(String(row?.entry_json));
};

describe("settings of chats", () => {
  test("a platform that cannot be reached, one with a placeholder and a wrong option stop nobody", () =>
    inWorld(
      {
        env: {
          TELEGRAM_BOT_TOKEN: "123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
          TELEGRAM_BASE_URL: "http://127.0.0.1:9",
          DISCORD_BOT_TOKEN: "your-token-here",
        },
        config: "platforms:\n  paper: {extra: {no_such_option: 1}}\n  slack: {enabled: true}\n",
      },
      async ({ paper, home, told }) => {
        const gateway = await startGateway(home);
        const lines = gateway.lines.join("\n");
        assert.match(lines, /^\[Telegram\] failed: .*; retry in \d+ s$/m);
        assert.match(lines, /^\[Discord\] off: .*placeholder/m);
        assert.match(lines, /^\[Slack\] off: .*SLACK_BOT_TOKEN/m);
        assert.match(
          lines,
          /^\[Gateway\] warning: config\.yaml: nobody reads platforms\.paper\.extra\.no_such_option/m,
        );
        assert.match(lines, /^\[Gateway\] ready: paper$/m);
        paper.say("ann", "hello");
        await told("ann", "heard: hello");
        const status = JSON.parse((await typed(home, ["gateway", "status", "--json"])).stdout);
        assert.match(status.platforms.telegram.state, /^(?:retrying|connecting)$/); // it may be at it just now
        assert.equal(status.platforms.paper.state, "connected");
        assert.equal((await gateway.stop()).code, 0);
        assert.doesNotMatch(lines + (await readFile(home.at("logs", "agent.log"), "utf8")), /AAAAAAAAAA/);
      },
    ));

  test("nothing set up: the gateway says what to type, and ends with 1", () =>
    inWorld({ env: { PAPER_TOKEN: "" } }, async ({ home }) => {
      const gateway = await startGateway(home, { ready: /hermes gateway setup/ });
      assert.equal((await gateway.result).code, 1);
    }));

  test("what the gateway itself says is in the language of the settings, what the model says is not touched", () =>
    inWorld({ config: "display: {language: zh}\n" }, async ({ paper, home, told }) => {
      const gateway = await startGateway(home);
      paper.say("ann", "/approve");
      await told("ann", "这里没有等待批准的操作。");
      paper.say("ann", "Nothing is waiting for an approval here.");
      await told("ann", "heard: Nothing is waiting for an approval here.");
      await gateway.stop();
    }));

  test("with a list of admins others run what the list allows; help shows them no more", () =>
    inWorld(
      {
        config: `platforms:
  paper:
    extra: {allow_admin_from: [ann], user_allowed_commands: [status], group_allow_admin_from: [ann], group_user_allowed_commands: ["*"]}
quick_commands:
  hush: {type: alias, target: /platform pause paper}
`,
      },
      async ({ paper, home, told }) => {
        const gateway = await startGateway(home);
        paper.say("bob", "/status");
        await told("bob", "Session:");
        paper.say("bob", "/yolo");
        await told("bob", "You may not run /yolo");
        paper.say("bob", "/help");
        await told("bob", "`/whoami`");
        assert.doesNotMatch(paper.textsOf("bob").at(-1) ?? "", /\/yolo|\/model/);
        paper.say("ann", "/whoami");
        await told("ann", "admin");
        paper.say("ann", "/yolo");
        await until("ann may", () => paper.textsOf("ann").length >= 2);
        assert.ok(!paper.textsOf("ann").some((text) => text.includes("may not")));
        // Neither a shortened name nor an alias runs what the name itself would not.
        for (const text of ["/platform pause paper", "/platfor pause paper", "/hush"])
          paper.say("club", text, { user: "bob", kind: "group" });
        await until("each is refused", () => paper.textsOf("club").length === 3);
        for (const text of paper.textsOf("club")) assert.match(text, /You may not run \/platform here/);
        await gateway.stop();
      },
    ));

  test("hooks of the home hear of turns and may take a command over; a broken one stops nobody", () =>
    inWorld(
      {
        files: {
          "hooks/good/HOOK.yaml": "name: good\ndescription: notes\nevents: ['agent:*', 'command:status']\n",
          "hooks/good/handler.mjs": `import { appendFileSync } from "node:fs";
export function handle(event, ctx) {
  appendFileSync(new URL("heard.txt", import.meta.url), event + " " + (ctx.message ?? ctx.command ?? "") + "\\n");
  if (event === "command:status") return { decision: "handled", message: "all is well" };
}`,
          "hooks/broken/HOOK.yaml": "name: broken\nevents: ['agent:start']\n",
          "hooks/broken/handler.mjs": "export function handle() { throw new Error('broken'); }",
          "hooks/python/HOOK.yaml": "name: python\nevents: ['agent:start']\n",
          "hooks/python/handler.py": "def handle(event, ctx): pass",
        },
      },
      async ({ paper, home, told }) => {
        const gateway = await startGateway(home);
        paper.say("ann", "hello");
        await told("ann", "heard: hello");
        paper.say("ann", "/status");
        await told("ann", "all is well");
        await gateway.stop();
        const heard = (await readFile(home.at("hooks", "good", "heard.txt"), "utf8")).trim().split("\n");
        assert.deepEqual(heard, ["agent:start hello", "agent:step hello", "agent:end hello", "command:status status"]);
        assert.match(await readFile(home.at("logs", "agent.log"), "utf8"), /the hook python is not loaded/);
      },
    ));

  test("another model in the settings is used from the next message on, and the chat is told", () =>
    inWorld({}, async ({ model, paper, home, told }) => {
      const gateway = await startGateway(home);
      paper.say("ann", "one");
      await told("ann", "heard: one");
      const config = await readFile(home.at("config.yaml"), "utf8");
      await home.write("config.yaml", config.replace("default: fake-model", "default: other-model"));
      paper.say("ann", "two");
      await told("ann", "Model: other-model (was fake-model)");
      await told("ann", "heard: two");
      const asked = model.requests.filter(({ body }) => body.tools?.length).map(({ body }) => body.model);
      assert.deepEqual(asked, ["fake-model", "other-model"]);
      await gateway.stop();
    }));

  test("another key, another address and another API mode count from the next message on, also for an open agent", () =>
    inWorld({ config: "model: {default: mine-model, provider: mine}\n" }, async ({ model, paper, home, told }) => {
      const other = await ModelServer.start();
      answerTurns(other, (request) => ({
        text: request.wire === "chat" ? `heard elsewhere: ${lastSaid(request)}` : "heard in another mode",
      }));
      const written = await readFile(home.at("config.yaml"), "utf8");
      const variables = await readFile(home.at(".env"), "utf8");
      const setUp = async (url: string, key: string, mode: string) => {
        const entry = `providers:\n  mine: {api: "${url}", key_env: MINE_API_KEY, api_mode: ${mode}}\n`;
        await home.write("config.yaml", written + entry);
        await home.write(".env", `${variables}MINE_API_KEY=${key}\n`);
      };
      const keys = () =>
        model.requests.filter(({ body }) => body.tools?.length).map(({ headers }) => headers.authorization);
      await setUp(model.url, "first-key-1234567890", "chat_completions");
      const gateway = await startGateway(home);
      try {
        paper.say("ann", "one");
        await told("ann", "heard: one");
        await setUp(model.url, "second-key-1234567890", "chat_completions");
        paper.say("ann", "two");
        await told("ann", "heard: two");
        paper.say("ann", "again");
        await told("ann", "heard: again");
        const second = "Bearer second-key-1234567890";
        assert.deepEqual(keys(), ["Bearer first-key-1234567890", second, second]);
        await setUp(other.url, "second-key-1234567890", "chat_completions");
        paper.say("ann", "three");
        await told("ann", "heard elsewhere: three");
        await setUp(other.url, "second-key-1234567890", "codex_responses");
        paper.say("ann", "four");
        await told("ann", "heard in another mode");
        const log = await readFile(home.at("logs", "agent.log"), "utf8");
        assert.equal(log.match(/it is opened again/g)?.length, 3);
        assert.doesNotMatch(log, /-key-1234567890/);
      } finally {
        await gateway.stop();
        await other.close();
      }
    }));

  test("a turn that fails while the gateway stops stays marked, and the next start goes on with it", () =>
    inWorld({ config: "agent: {api_max_retries: 1}\n" }, async ({ model, paper, home, told }) => {
      const { promise: held, resolve: goOn } = Promise.withResolvers<void>();
      answerTurns(model, async () => {
        await held;
        return { fault: "status", status: 400, body: { error: { message: "bad request" } } };
      });
      const first = await startGateway(home);
      paper.say("ann", "work");
      await until("the model is asked", () => model.requests.length > 0);
      const stopped = first.stop();
      await told("ann", "The gateway stops.");
      goOn();
      await stopped;
      const marked = entryOf(home, "ann");
      assert.equal(marked.resume_pending, true);
      assert.equal(marked.resume_reason, "shutdown_timeout");
      assert.match(String(marked.last_resume_marked_at), /^\d{4}-\d\d-\d\dT/);
      answerTurns(model, () => ({ text: "done at last" }));
      const second = await startGateway(home);
      await told("ann", "done at last");
      assert.equal(entryOf(home, "ann").resume_pending, false);
      await second.stop();
    }));

  test("/model of a chat is kept over a restart, and is the chat's own", () =>
    inWorld({}, async ({ model, paper, home, told }) => {
      model.models = ["fake-model", "other-model"];
      const first = await startGateway(home);
      paper.say("ann", "/model other-model");
      await told("ann", "other-model");
      await first.stop();
      const second = await startGateway(home);
      paper.say("ann", "which?");
      await told("ann", "heard: which?");
      paper.say("bob", "and mine?");
      await told("bob", "heard: and mine?");
      const asked = model.requests.filter(({ body }) => body.tools?.length).map(({ body }) => body.model);
      assert.deepEqual(asked, ["other-model", "fake-model"]);
      assert.doesNotMatch(JSON.stringify(entryOf(home, "ann")), /test-key/);
      await second.stop();
    }));

  test("a conversation that was idle too long is over: the next message begins a new one, and says so", () =>
    inWorld({ config: "session_reset:\n  mode: idle\n  idle_minutes: 0\n" }, async ({ model, paper, home, told }) => {
      const gateway = await startGateway(home);
      paper.say("ann", "pineapple");
      await told("ann", "heard: pineapple");
      const before = entryOf(home, "ann").session_id;
      paper.say("ann", "what did I say?");
      await told("ann", "This is a new conversation");
      await told("ann", "what did I say?");
      assert.notEqual(entryOf(home, "ann").session_id, before);
      const [request] = model.requests.filter(
        ({ body }) => body.tools?.length && JSON.stringify(body.messages).includes("what did I say?"),
      );
      assert.ok(!JSON.stringify(request?.body.messages.slice(1)).includes("pineapple"));
      assert.match(
        JSON.stringify(request?.body.messages),
        new RegExp(String(before)),
        "the model is told where the old one is",
      );
      const [row] = rowsOf(home, `SELECT end_reason FROM sessions WHERE id = '${before}'`);
      assert.equal(row?.end_reason, "idle");
      await gateway.stop();
    }));

  test("chats that the original left in sessions.json go on, and it finds ours there", () =>
    inWorld({ config: "session_reset:\n  mode: none\n" }, async ({ paper, home, told }) => {
      const seeding = await startGateway(home);
      paper.say("ann", "pineapple");
      await told("ann", "heard: pineapple");
      await seeding.stop();
      const path = home.at("sessions", "sessions.json");
      const written = JSON.parse(await readFile(path, "utf8"));
      const key = "agent:main:paper:dm:ann";
      assert.equal(written[key].platform, "paper");
      const later = "2099-01-01T00:00:00.000000";
      const moved = { ...written[key], session_key: "agent:main:paper:dm:bob", updated_at: later, of_the_original: 7 };
      await home.write("sessions/sessions.json", JSON.stringify({ _remark: "x", "agent:main:paper:dm:bob": moved }));
      const gateway = await startGateway(home);
      paper.say("bob", "what was it?");
      await told("bob", "what was it?");
      await gateway.stop();
      const [count] = rowsOf(
        home,
        `SELECT COUNT(*) AS n FROM messages WHERE session_id = '${moved.session_id}' AND role = 'user'`,
      );
      assert.equal(count?.n, 2, "the conversation went on");
      const after = JSON.parse(await readFile(path, "utf8"));
      assert.equal(after["agent:main:paper:dm:bob"].of_the_original, 7, "what we do not know is kept");
    }));
});
