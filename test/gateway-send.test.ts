// Messages to chats that nobody wrote in: by the tool, by `hermes send`, by name, by home channel.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { answerTurns, lastSaid, ModelServer, startGateway, typed, until } from "./support/gateway-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

interface Said {
  readonly role: string;
  readonly content?: unknown;
}

describe("a message to a chat", () => {
  let model: ModelServer;
  let paper: PaperServer;
  let home: TempHome;
  before(async () => {
    model = await ModelServer.start();
    paper = await PaperServer.start();
    home = await paperHome(model, paper, { gateway: "    expiry_first: 0.3\n    directory: 0.5\n" });
  });
  after(async () => {
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  });
  const send = async (...args: string[]) => {
    const { code, stdout, stderr } = await typed(home, ["send", "--json", ...args]);
    return { code, result: stdout === "" ? null : JSON.parse(stdout), stderr };
  };

  test("without a gateway it is sent straight to the platform", async () => {
    const { code, result } = await send("-t", "paper:ann", "hello", "Ann");
    assert.equal(code, 0);
    assert.deepEqual(
      { ...result, message_id: "" },
      { success: true, platform: "paper", chat_id: "ann", message_id: "" },
    );
    assert.deepEqual(paper.textsOf("ann"), ["hello Ann"]);
    await send("-t", "paper:sue", "-s", "Nightly", "All green.");
    assert.deepEqual(paper.textsOf("sue"), ["Nightly\n\nAll green."], "a first line where there are no subjects");
  });

  test("what cannot be sent says why, with a code", async () => {
    for (const [args, status, code] of [
      [["-t", "nowhere", "x"], 1, "unknown_platform"],
      [["-t", "telegram", "x"], 1, "not_configured"],
      [["-t", "paper", "x"], 1, "no_target"],
      [["-t", "paper:#nobody", "x"], 1, "no_target"],
    ] as const) {
      const answer = await send(...args);
      assert.equal(answer.code, status, JSON.stringify(answer));
      assert.equal(answer.result.code, code);
    }
    assert.equal((await send("x")).code, 2);
    assert.equal((await send("-t", "paper:ann")).code, 2);
  });

  test("with a gateway it is promised and sent; names, home channel and the tool lead to chats", async () => {
    answerTurns(model, (request) => {
      const said = lastSaid(request);
      if (said.startsWith("tell"))
        return {
          toolCalls: [
            { name: "send_message", arguments: { target: `paper:${said.slice(5)}`, message: "greetings from Bob" } },
          ],
        };
      return { text: `heard: ${said}` };
    });
    const gateway = await startGateway(home);
    try {
      paper.say("bob", "/sethome");
      await until("the home channel is set", () => paper.textsOf("bob").some((text) => text.includes("home channel")));
      const sent = await send("-t", "paper", "to the home channel");
      assert.equal(sent.code, 0, sent.stderr);
      assert.ok(paper.textsOf("bob").includes("to the home channel"));
      await until("the directory names bob", async () =>
        (await typed(home, ["send", "--list", "paper"])).stdout.includes("bob"),
      );
      assert.equal((await send("-t", "paper:#bo", "by name")).code, 0);
      assert.ok(paper.textsOf("bob").includes("by name"));
      paper.say("cleo", "hi");
      await until("cleo is known", () => paper.textsOf("cleo").length > 0);
      paper.say("bob", "tell cleo");
      await until("cleo is told", () => paper.textsOf("cleo").includes("greetings from Bob"));
      await until("the tool's result", () =>
        model.requests.some(
          ({ body }) =>
            JSON.stringify(body.messages).includes('\\"success\\": true') ||
            JSON.stringify(body.messages).includes('\\"success\\":true'),
        ),
      );
      const mirrored = rowsOf(
        home,
        "SELECT content FROM messages WHERE role = 'assistant' AND content LIKE '[Delivered from paper]%'",
      );
      assert.equal(mirrored.length, 1);
      for (const user of ["gil", "hana"]) paper.say("club", `hi from ${user}`, { user, kind: "group" });
      await until("both are known there", () => paper.textsOf("club").length === 2);
      paper.say("bob", "tell club");
      await until("the club is told", () => paper.textsOf("club").includes("greetings from Bob"));
      paper.say("bob", "done?");
      await until("the tool is done", () => paper.textsOf("bob").some((text) => text.includes("heard: done?")));
      const more = rowsOf(home, "SELECT 1 FROM messages WHERE content LIKE '[Delivered from paper]%'").length;
      assert.equal(more, 1, "of several conversations of a chat none is meant");
      assert.equal(rowsOf(home, "SELECT 1 FROM outbox WHERE cause LIKE 'send:%' AND state = 'sent'").length >= 3, true);
    } finally {
      await gateway.stop();
    }
  });

  test("an agent that is open knows what was sent into its chat, also in the middle of its turn", async () => {
    const list = { toolCalls: [{ name: "send_message", arguments: { action: "list" } }] };
    const told = (text: string) => ({
      toolCalls: [{ name: "send_message", arguments: { target: "paper:eve", message: text } }],
    });
    const { promise: held, resolve: goOn } = Promise.withResolvers<void>();
    answerTurns(model, async ({ body }) => {
      const user = String(body.messages.findLast(({ role }: Said) => role === "user")?.content ?? "");
      const isFirst = body.messages.at(-1)?.role === "user";
      if (user.startsWith("tell eve ")) return isFirst ? told(user.slice(9)) : { text: `told: ${user.slice(9)}` };
      if (user !== "work") return { text: `heard: ${user}` };
      if (isFirst) return list;
      await held;
      return { text: "worked" };
    });
    const saidTo = (user: string) =>
      model.requests
        .map(({ body }) => body.messages)
        .filter((messages) => messages.some(({ role, content }: Said) => role === "user" && content === user));
    const gateway = await startGateway(home);
    try {
      paper.say("eve", "hi");
      await until("eve is known", () => paper.textsOf("eve").includes("heard: hi"));
      paper.say("dan", "tell eve the key is under the mat");
      await until("dan's turn is over", () => paper.textsOf("dan").includes("told: the key is under the mat"));
      const result = saidTo("tell eve the key is under the mat").at(-1)?.at(-1);
      assert.match(String(result?.content), /"mirrored": ?true/);
      paper.say("eve", "who wrote that?");
      await until("eve is answered", () => paper.textsOf("eve").includes("heard: who wrote that?"));
      const [asked = []] = saidTo("who wrote that?");
      assert.deepEqual(
        asked.slice(1).map(({ role }: Said) => role),
        ["user", "assistant", "user"],
      );
      assert.equal(asked.at(-2)?.content, "heard: hi\n[Delivered from paper]\nthe key is under the mat");
      assert.deepEqual(asked.slice(0, 2), saidTo("hi")[0]?.slice(0, 2), "what was sent stays as it was");

      paper.say("eve", "work");
      await until("her turn waits for the model", () => saidTo("work").length === 2);
      paper.say("dan", "tell eve it moved");
      await until("dan's second turn is over", () => paper.textsOf("dan").includes("told: it moved"));
      assert.match(String(saidTo("tell eve it moved").at(-1)?.at(-1)?.content), /"mirrored": ?true/);
      goOn();
      await until("her work is done", () => paper.textsOf("eve").includes("worked"));
      paper.say("eve", "and now?");
      await until("eve is answered again", () => paper.textsOf("eve").includes("heard: and now?"));
      const [again = []] = saidTo("and now?");
      assert.deepEqual(
        again.slice(-5).map(({ role }: Said) => role),
        ["user", "assistant", "tool", "assistant", "user"],
      );
      assert.equal(again.at(-2)?.content, "worked\n[Delivered from paper]\nit moved");
      const before = saidTo("work").at(-1) ?? [];
      assert.deepEqual(again.slice(0, before.length), before, "what was sent stays as it was");
    } finally {
      goOn();
      await gateway.stop();
    }
  });
});
