// Chats through the real gateway: who may write, which conversation belongs to a chat, what the model is told, what commands do.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { startEditorHere } from "./support/editor.ts";
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
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

describe("a gateway", () => {
  let model: ModelServer;
  let paper: PaperServer;
  let home: TempHome;
  let gateway: RunningGateway;
  before(async () => {
    model = await ModelServer.start();
    paper = await PaperServer.start();
    answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
    home = await paperHome(model, paper, {
      env: {
        PAPER_ALLOW_ALL_USERS: "",
        PAPER_ALLOWED_USERS: "ann,bob,cleo,dora,emil,fay,gus,hal,ida",
        PAPER_UNAUTHORIZED_DM_BEHAVIOR: "pair",
      },
      config: "agent:\n  system_prompt: Speak of teal.\n",
      gateway: "    rest_first: 0.1\n", // the last of two equal keys counts
    });
    gateway = await startGateway(home);
  });
  after(async () => {
    await gateway.kill();
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  });

  const answered = (chat: string, part: string) =>
    until(`${chat} is told "${part}"; there: ${JSON.stringify(paper.textsOf(chat))}`, () =>
      paper.textsOf(chat).some((text) => text.includes(part)),
    );
  const requestsWith = (part: string) =>
    model.requests.filter(({ body }) => body.tools?.length && JSON.stringify(body.messages).includes(part));
  const sessionOf = (chat: string) => {
    const [row] = rowsOf(
      home,
      `SELECT entry_json FROM gateway_routing WHERE session_key = 'agent:main:paper:dm:${chat}'`,
    );
    return JSON.parse(String(row?.entry_json)) as Record<string, unknown>;
  };

  test("F246, F249: a message is answered, and the next one finds the conversation where it was", async () => {
    paper.say("ann", "my name is Ann");
    await answered("ann", "heard: my name is Ann");
    paper.say("ann", "what is my name?");
    await answered("ann", "heard: what is my name?");
    assert.ok(
      requestsWith("what is my name?").every(({ body }) => JSON.stringify(body.messages).includes("my name is Ann")),
    );
    assert.match(gateway.lines.join("\n"), /^\[Paper\] connected as @paper$/m);
  });

  test("F239: the same words in a terminal are another conversation", async () => {
    const entry = sessionOf("ann");
    const { code, stdout } = await typed(home, ["-z", "what is my name?"]);
    assert.equal(code, 0);
    assert.match(stdout, /heard: what is my name\?/);
    const [other] = rowsOf(home, "SELECT id, source FROM sessions WHERE source = 'cli'");
    assert.ok(other && other.id !== entry.session_id);
    const asked = requestsWith("what is my name?").at(-1);
    assert.ok(!JSON.stringify(asked?.body.messages).includes("my name is Ann"));
    assert.equal(sessionOf("ann").session_id, entry.session_id);
  });

  test("F240: a chat is a session of its platform, with the original's entry beside it", () => {
    const entry = sessionOf("ann");
    const [session] = rowsOf(home, `SELECT source, user_id FROM sessions WHERE id = '${entry.session_id}'`);
    assert.deepEqual({ ...session }, { source: "paper", user_id: "ann" });
    assert.match(String(entry.session_id), /^\d{8}_\d{6}_[0-9a-f]{8}$/);
    assert.match(String(entry.updated_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+$/);
    assert.equal(entry.platform, "paper");
  });

  test("F128: where the chat is stands over the prompt of each request, and nowhere in the store", async () => {
    const { body } = requestsWith("what is my name?")[0] ?? assert.fail("no request");
    assert.match(String(body.messages[0].content), /Platform: Paper\. DM with ann/);
    const [session] = rowsOf(home, `SELECT system_prompt FROM sessions WHERE id = '${sessionOf("ann").session_id}'`);
    assert.doesNotMatch(String(session?.system_prompt), /Platform: Paper/);
  });

  test("F130: chat, terminal and editor lay words over the prompt, and what is stored is the same for all three", async () => {
    await using editor = await startEditorHere({ home });
    await editor.say(await editor.begin(), "asked in an editor");
    const asked = { cli: "what is my name?", paper: "my name is Ann", acp: "asked in an editor" };
    const stored = Object.entries(asked).map(([source, words]) => {
      const [row] = rowsOf(home, `SELECT system_prompt FROM sessions WHERE source = '${source}' ORDER BY started_at`);
      const prompt = String(row?.system_prompt);
      const sent = requestsWith(words)
        .map(({ body }) => String(body.messages[0].content))
        .find((system) => system.startsWith(prompt));
      assert.match(sent?.slice(prompt.length) ?? "", /Speak of teal\./, source);
      assert.doesNotMatch(prompt, /Speak of teal/, source);
      // Whose words they are read by, the prompt does say.
      return prompt.replace(/You are a CLI agent.*\n\n/, "").replace(`Platform: ${source}`, "");
    });
    assert.equal(new Set(stored).size, 1);
  });

  test("19.11: two turns of a chat send the same system text", () => {
    const systems = [...requestsWith("my name is Ann")].map(({ body }) => String(body.messages[0].content));
    assert.ok(systems.length >= 2);
    assert.equal(new Set(systems).size, 1);
  });

  test("what was written long before it is read says when, to the model alone", async () => {
    const [old, recent] = ["the question of an hour ago", "the question of two minutes ago"];
    for (const [text, seconds] of [[old, 3600] as const, [recent, 120] as const]) {
      paper.say("ann", text, { at: Date.now() / 1000 - seconds });
      await answered("ann", text);
    }
    const said = (text: string) => lastSaid(requestsWith(text)[0] ?? assert.fail("no request"));
    assert.match(said(old), /\[Written at \d{4}-\d\d-\d\dT[\d:.]+Z, 60 minutes ago\.\]/);
    assert.doesNotMatch(said(recent), /Written at/);
    assert.deepEqual(rowsOf(home, "SELECT 1 FROM messages WHERE role = 'user' AND content LIKE '%Written at%'"), []);
  });

  test("F247: a stranger is no session, no row and no request; a code opens the door", async () => {
    const before = model.requests.length;
    paper.say("stranger", "let me in");
    await answered("stranger", "Pairing code: ");
    assert.equal(model.requests.length, before);
    assert.equal(rowsOf(home, "SELECT 1 FROM inbox WHERE session_key LIKE '%stranger%'").length, 0);
    assert.equal(rowsOf(home, "SELECT 1 FROM gateway_routing WHERE session_key LIKE '%stranger%'").length, 0);
    paper.say("stranger", "hello?");
    const code = /Pairing code: (\w{8})/.exec(paper.textsOf("stranger").join("\n"))?.[1] ?? assert.fail("no code");
    const approved = await typed(home, ["pairing", "approve", "paper", code]);
    assert.equal(approved.code, 0, approved.stderr);
    paper.say("stranger", "and now?");
    await answered("stranger", "heard: and now?");
    assert.equal(paper.textsOf("stranger").filter((text) => text.includes("Pairing code")).length, 1);
  });

  test("in a group a stranger hears nothing", async () => {
    paper.say("club", "who are you?", { user: "nobody", kind: "group" });
    paper.say("club", "hello from ann", { user: "ann", kind: "group" });
    await answered("club", "heard: ");
    assert.deepEqual(paper.textsOf("club").length, 1);
    assert.equal(requestsWith("who are you?").length, 0);
  });

  test("F248: two threads of one chat are two conversations, and each member of a group has one", async () => {
    paper.say("bob", "in thread one", { thread: "t1" });
    await answered("bob", "heard: in thread one");
    paper.say("bob", "in thread two", { thread: "t2" });
    await answered("bob", "heard: in thread two");
    assert.ok(!JSON.stringify(requestsWith("in thread two")[0]?.body.messages).includes("in thread one"));
    paper.say("club", "bob in the club", { user: "bob", kind: "group" });
    await answered("club", "heard: bob in the club");
    assert.ok(!JSON.stringify(requestsWith("bob in the club")[0]?.body.messages).includes("hello from ann"));
  });

  test("people in a shared thread are told apart by name", async () => {
    paper.say("club", "one", { user: "ann", kind: "group", thread: "t9" });
    await answered("club", "heard: [ann] one");
    paper.say("club", "two", { user: "bob", kind: "group", thread: "t9" });
    await answered("club", "heard: [bob] two");
    assert.ok(JSON.stringify(requestsWith("[bob] two")[0]?.body.messages).includes("[ann] one"));
  });

  test("F241, F242: commands come from the one registry", async () => {
    paper.say("cleo", "/help");
    await answered("cleo", "`/commands");
    const help = paper.textsOf("cleo").join("\n");
    for (const name of ["model", "compress", "skills", "yolo", "new", "stop", "status"])
      assert.match(help, new RegExp(`\`/${name}[ \`]`), name);
    assert.doesNotMatch(help, /`\/clear/);
    paper.say("cleo", "/STATUS@paper");
    await answered("cleo", String(sessionOf("cleo").session_id));
    paper.say("cleo", "/modle");
    await answered("cleo", "Unknown command /modle");
    assert.equal(requestsWith("/modle").length, 0);
    assert.deepEqual(
      rowsOf(home, "SELECT DISTINCT outcome FROM inbox WHERE session_key = 'agent:main:paper:dm:cleo'").map(
        (row) => row.outcome,
      ),
      ["command"],
    );
  });

  test("F244: /new asks first, and a button or a word answers", async () => {
    paper.say("dora", "pineapple");
    await answered("dora", "heard: pineapple");
    const first = sessionOf("dora").session_id;
    paper.say("dora", "/new");
    await until("a question with buttons", () =>
      paper.messages.some(({ chat, question }) => chat === "dora" && question !== undefined),
    );
    const question = paper.messages.find(({ chat, question: id }) => chat === "dora" && id !== undefined);
    assert.deepEqual(
      question?.buttons.map(({ label }) => label),
      ["Yes, once", "Always", "Cancel"],
    );
    paper.say("dora", "no");
    await until("the question is closed", () => question?.text.includes("Cancel") === true);
    assert.equal(sessionOf("dora").session_id, first);
    paper.say("dora", "/new");
    await until(
      "another question",
      () => paper.messages.filter(({ chat, question: id }) => chat === "dora" && id !== undefined).length === 2,
    );
    const again =
      paper.messages.findLast(({ chat, question: id }) => chat === "dora" && id !== undefined) ?? assert.fail();
    paper.press(again, "once", "stranger-2");
    paper.press(again, "once");
    await answered("dora", "New conversation");
    assert.notEqual(sessionOf("dora").session_id, first);
    const [row] = rowsOf(home, `SELECT end_reason FROM sessions WHERE id = '${first}'`);
    assert.equal(row?.end_reason, "session_reset");
    await until("the stranger is told no", () =>
      paper.answers.some(({ user, text }) => user === "stranger-2" && text.includes("may not")),
    );
    paper.say("dora", "after");
    await answered("dora", "heard: after");
    assert.ok(!JSON.stringify(requestsWith("after")[0]?.body.messages).includes("pineapple"));
  });

  test("13: an answer with a long text comes in parts, in order, each within the limit", async () => {
    const long = Array.from({ length: 150 }, (_, at) => `line ${at} of a long answer`).join("\n");
    answerTurns(model, () => ({ text: long }));
    paper.say("emil", "tell me everything");
    await answered("emil", "line 149 of a long answer");
    const texts = paper.textsOf("emil");
    assert.ok(texts.length > 1 && texts.every((text) => text.length <= 2000));
    const joined = texts.map((text) => text.replace(/ \(\d+\/\d+\)$/, "")).join("\n");
    assert.equal(joined, long);
    answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
  });

  test("the chat of a thread that is gone is not silent: the answer goes to the chat itself", async () => {
    paper.goneThreads.add("old");
    paper.say("fay", "are you there?", { thread: "old" });
    await answered("fay", "(the thread is gone)\nheard: are you there?");
  });

  test("a model that fails is said in one plain sentence", async () => {
    answerTurns(model, () => ({
      fault: "status",
      status: 401,
      body: { error: { message: "invalid api key sk-abcdefghijklmnop1234" } },
    }));
    paper.say("gus", "hello");
    await until("a sentence", () => paper.textsOf("gus").length === 1);
    assert.deepEqual(paper.textsOf("gus"), [
      "The model provider refused the key. The owner of this bot has to check it.",
    ]);
    assert.match(
      await readFile(home.at("logs/gateway.log"), "utf8"),
      /127\.0\.0\.1 did not accept the API key\. Check /,
    );
    answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
    paper.say("gus", "again");
    await answered("gus", "again");
  });

  test("a setting that changes is in force with the next message", async () => {
    paper.say("zed", "may I?");
    paper.say("hal", "marker");
    await answered("hal", "heard: marker");
    const env = await readFile(home.at(".env"), "utf8");
    await home.write(".env", env.replace("PAPER_ALLOWED_USERS=", "PAPER_ALLOWED_USERS=zed,"));
    paper.say("zed", "and now?");
    await answered("zed", "heard: and now?");
  });

  test("/resume of a conversation that another chat is in opens a copy: neither hears what the other says", async () => {
    const held = sessionOf("ann").session_id;
    paper.say("ida", `/resume ${held}`);
    await answered("ida", "Resumed ");
    const copy = sessionOf("ida").session_id;
    assert.notEqual(copy, held);
    assert.equal(sessionOf("ann").session_id, held);
    paper.say("ida", "what was said before?");
    await answered("ida", "heard: what was said before?");
    const asked = requestsWith("what was said before?").at(-1);
    assert.match(JSON.stringify(asked?.body.messages), /my name is Ann/);
    assert.deepEqual(
      rowsOf(home, "SELECT DISTINCT session_id FROM messages WHERE content = 'what was said before?'").map((row) => ({
        ...row,
      })),
      [{ session_id: copy }],
    );
  });

  test("/personality counts from the next message on, in chats too", async () => {
    paper.say("cleo", "/personality pirate");
    await answered("cleo", "Personality: pirate");
    paper.say("cleo", "how do you talk?");
    await answered("cleo", "heard: how do you talk?");
    const [asked] = requestsWith("how do you talk?");
    assert.match(String(asked?.body.messages[0].content), /pirate/i);
    assert.doesNotMatch(String(asked?.body.messages[0].content), /Speak of teal/);
  });

  test("gateway status tells what people ask", async () => {
    const { stdout, code } = await typed(home, ["gateway", "status", "--json"]);
    assert.equal(code, 0);
    const status = JSON.parse(stdout);
    assert.equal(status.running, true);
    assert.equal(status.pid, gateway.pid);
    assert.equal(status.state, "running");
    assert.equal(status.platforms.paper.state, "connected");
    assert.equal(status.platforms.paper.account, "@paper");
    assert.deepEqual(status.outbox.dead, 0);
  });
});
