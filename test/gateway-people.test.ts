// What people who are not the owner may do in chats, and what the owner is told about chats: on the console, in status, through hooks.
import assert from "node:assert/strict";
import { appendFile, readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import {
  answerTurns,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  typed,
  until,
} from "./support/gateway-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { type PaperMessage, PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

const HOOK = {
  "hooks/notes/HOOK.yaml": "name: notes\nevents: ['session:*']\n",
  "hooks/notes/handler.mjs": `import { appendFileSync } from "node:fs";
export function handle(event, ctx) {
  appendFileSync(new URL("heard.txt", import.meta.url), [event, ctx.platform, ctx.user_id, ctx.session_id].join(" ") + "\\n");
}`,
};

describe("with ann as the only admin", () => {
  let model: ModelServer;
  let paper: PaperServer;
  let home: TempHome;
  let gateway: RunningGateway;
  let letGo: () => void = () => undefined;
  before(async () => {
    model = await ModelServer.start();
    paper = await PaperServer.start();
    home = await paperHome(model, paper, {
      files: HOOK,
      config:
        "display: {busy_input_mode: queue}\nthread_sessions_per_user: false\n" +
        "platforms:\n  paper: {extra: {allow_admin_from: [ann], group_allow_admin_from: [ann]}}\n",
    });
    answerTurns(model, async (request) => {
      const said = lastSaid(request).split("\n").at(-1) ?? "";
      if (said.includes("slow")) await new Promise<void>((resolve) => (letGo = resolve));
      const [, command] = /run (.+)$/.exec(said) ?? [];
      return command ? { toolCalls: [{ name: "terminal", arguments: { command } }] } : { text: `heard: ${said}` };
    });
    gateway = await startGateway(home);
  });
  after(async () => {
    letGo();
    await gateway.kill();
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  });

  const told = (chat: string, part: string) =>
    until(`${chat} is told "${part}"; there: ${JSON.stringify(paper.textsOf(chat))}`, () =>
      paper.textsOf(chat).some((text) => text.includes(part)),
    );
  const questionIn = async (chat: string): Promise<PaperMessage> => {
    const asked = () => paper.messages.find((one) => one.chat === chat && one.buttons.length > 0);
    await until(`a question in ${chat}`, () => asked() !== undefined);
    return asked() ?? assert.fail();
  };
  const running = async () => JSON.parse((await typed(home, ["gateway", "status", "--json"])).stdout).turns.running;

  test("only an admin is offered to allow something for ever; everybody may answer what they were asked", async () => {
    const choices = ({ buttons }: PaperMessage) => buttons.map(({ choice }) => choice);
    paper.say("ann", `run rm -rf ${home.at("a")}`);
    const forAnn = await questionIn("ann");
    assert.deepEqual(choices(forAnn), ["once", "session", "always", "deny"]);
    paper.say("bob", `run rm -rf ${home.at("b")}`);
    const forBob = await questionIn("bob");
    assert.deepEqual(choices(forBob), ["once", "session", "deny"]);
    assert.doesNotMatch(forBob.text, /always/);
    paper.say("bob", "/approve always");
    await told("bob", "Approved.");
    await told("bob", "heard: ");
    assert.doesNotMatch(await readFile(home.at("config.yaml"), "utf8"), /command_allowlist/);
    paper.say("ann", "/deny");
    await told("ann", "heard: ");
    paper.say("bob", "/approve");
    await told("bob", "You may not run /approve");
  });

  test("whoever asked may stop their own turn, and status shows that it runs", async () => {
    await until("the turns before are over", async () => (await running()) === 0);
    paper.say("bob", "slow one");
    await until("a turn is shown", async () => (await running()) === 1);
    paper.say("bob", "/stop");
    await told("bob", "Stopped.");
    letGo();
    await until("none is shown", async () => (await running()) === 0);
    paper.say("bob", "/help");
    await told("bob", "`/stop`");
  });

  test("in a shared thread a turn is stopped by whoever asked or by an admin, not by others", async () => {
    const place = { kind: "group", thread: "t1" };
    const said = (user: string, text: string) => paper.say("room", text, { ...place, user });
    said("bob", "slow two");
    await until("a turn is shown", async () => (await running()) === 1);
    said("cid", "me too");
    said("cid", "/stop");
    await told("room", "You may not run /stop");
    said("bob", "/stop");
    await told("room", "Stopped.");
    letGo();
    await told("room", "heard: [cid] me too");
  });

  test("/queue says that the message waits, when it does", async () => {
    paper.say("ann", "slow three");
    await until("a turn is shown", async () => (await running()) === 1);
    paper.say("ann", "/queue later");
    await told("ann", "Queued.");
    letGo();
    await told("ann", "heard: later");
  });

  test("hooks hear when a conversation begins and ends", async () => {
    paper.say("dora", "hello");
    await told("dora", "heard: hello");
    paper.say("ann", "/new now");
    await told("ann", "New conversation");
    const heard = async () => (await readFile(home.at("hooks", "notes", "heard.txt"), "utf8")).trim().split("\n");
    const sessionOf = (chat: string) => {
      const [row] = rowsOf(home, `SELECT entry_json FROM gateway_routing WHERE session_key LIKE '%:dm:${chat}'`);
      return JSON.parse(String(row?.entry_json)).session_id;
    };
    await until("the hook has heard it", async () =>
      (await heard()).includes(`session:start paper ann ${sessionOf("ann")}`),
    );
    assert.ok((await heard()).includes(`session:start paper dora ${sessionOf("dora")}`));
    assert.equal((await heard()).filter((line) => line.startsWith("session:end paper ann ")).length, 1);
  });
});

test("in a profile every command that is named has its name; who is approved ends the warning; a changed plugin is named", async () => {
  const model = await ModelServer.start();
  const paper = await PaperServer.start();
  const { PAPER_ALLOW_ALL_USERS: _, ...env } = paper.env;
  const home = await paperHome(model, paper, { env: { PAPER_ALLOW_ALL_USERS: "" } });
  const work = `${home.dir}/profiles/work`;
  try {
    await typed(home, ["profile", "create", "work", "--clone"]);
    const { cp } = await import("node:fs/promises");
    await cp(home.at("plugins"), `${work}/plugins`, { recursive: true });
    await cp(home.at("config.yaml"), `${work}/config.yaml`);
    await home.write(
      "profiles/work/.env",
      Object.entries(env)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(""),
    );
    answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
    const gateway = await startGateway(home, { profile: "work" });
    const warning = /nobody may use the bot on paper yet.* hermes -p work pairing approve/;
    assert.match(gateway.lines.join("\n"), warning);
    paper.say("eve", "hello");
    await until("a code", () => paper.textsOf("eve").length > 0);
    const [, code = ""] = /\nhermes -p work pairing approve paper (\w{8})$/.exec(paper.textsOf("eve")[0] ?? "") ?? [];
    const status = async () => (await typed(home, ["-p", "work", "gateway", "status"])).stdout;
    assert.match(await status(), warning);
    assert.equal((await typed(home, ["-p", "work", "pairing", "approve", "paper", code])).code, 0);
    assert.doesNotMatch(await status(), /nobody may use/);
    assert.equal((await gateway.stop()).code, 0);

    await appendFile(`${work}/plugins/paper/index.mjs`, "\n// other code\n");
    const again = await startGateway(home, { profile: "work", ready: /no platform is set up/ });
    assert.match(
      again.lines.join("\n"),
      /warning: .*paper.*changed since you enabled it.*hermes -p work plugins enable paper/,
    );
    assert.match(again.lines.join("\n"), /no platform is set up: hermes -p work gateway setup/);
    await again.result;
  } finally {
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  }
});
