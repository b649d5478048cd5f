// Asking one's past, as its user does: in the terminal through a model that searches, from the shell, and in the list of conversations.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { RecordedRequest } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const TWINS = [
  {
    said: "I moved my appointment with the dentist to Thursday at nine",
    asked: "when did I last mention the dentist?",
  },
  { said: "我把牙医的预约改到星期四上午九点了", asked: "我上次提到牙医是什么时候？" },
] as const;

interface Found {
  readonly count: number;
  readonly results: readonly {
    readonly snippet: string;
    readonly relaxed?: boolean;
    readonly matched?: readonly string[];
  }[];
}

describe("a question about the past", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());

  /** Two conversations that were held, and one beside them. */
  async function pastOf(home: TempHome): Promise<void> {
    server.clear().otherwise({ text: "Noted." });
    for (const text of [...TWINS.map(({ said }) => said), "Describe the lighthouse of Genoa"]) {
      const { code, stderr } = await runHermes(["-z", text], { home });
      assert.equal(code, 0, stderr);
    }
    server.clear().otherwise(searchAndAnswer);
  }

  /** A model that asks the past what it was asked, in the same words, and says what came back first. */
  function searchAndAnswer(request: RecordedRequest) {
    const last = request.body.messages.at(-1);
    if (last.role !== "tool")
      return { toolCalls: [{ name: "session_search", arguments: { query: String(last.content) } }] };
    const found = resultOf(request);
    return { text: `FOUND ${found.results[0]?.snippet ?? "nothing"} OF ${found.count}` };
  }

  const resultOf = (request: RecordedRequest): Found => {
    const content = String(request.body.messages.at(-1).content);
    return JSON.parse(content.slice(content.indexOf("{"), content.lastIndexOf("}") + 1));
  };

  for (const { said, asked } of TWINS) {
    test(`"${asked}" finds what was said, through the model and from the shell`, async () => {
      await using home = await tempHome({ "config.yaml": modelConfig(server) });
      await pastOf(home);
      const answer = await runHermes(["-z", asked], { home });
      assert.equal(answer.code, 0, answer.stderr);
      const [best] = resultOf(server.last).results;
      assert.equal(best?.snippet.replaceAll(/>>>|<<</g, ""), said);
      assert.equal(best?.relaxed, true);
      assert.match(answer.stdout, /^FOUND .*>>>(?:dentist|牙医)<<</);

      const shell = await runHermes(["sessions", "search", ...asked.split(" ")], { home });
      assert.equal(shell.code, 0, shell.stderr);
      // The question itself was asked in a conversation too; what was said before it is there.
      assert.ok(shell.stdout.replaceAll(/>>>|<<</g, "").includes(said), shell.stdout);
      assert.doesNotMatch(shell.stdout, /Genoa/);
    });
  }

  test("operators still command, from the shell too", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await pastOf(home);
    const search = async (query: string) => (await runHermes(["sessions", "search", query], { home })).stdout;
    assert.match(await search('"lighthouse of Genoa" OR 牙医'), /Genoa[\s\S]*牙医|牙医[\s\S]*Genoa/);
    const nothing = await runHermes(["sessions", "search", '"Genoa lighthouse"'], { home });
    assert.deepEqual([nothing.code, nothing.stdout], [1, ""]);
    assert.match(nothing.stderr, /^hermes: Nothing found for ""Genoa lighthouse""\.\n$/);
    assert.match(await search("lighthouses in genoa"), />>>lighthouse<<< of >>>Genoa<<</);
  });

  test("in the terminal the answer comes back, and the list of conversations takes a question", {
    skip: tmuxMissing(),
  }, async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await pastOf(home);
    await using screen = await TerminalScreen.start([], { home, columns: 110, rows: 30 });
    await screen.waitFor("fake-model");
    for (const { asked } of TWINS) {
      await screen.say(asked);
      await screen.waitFor(asked.includes("dentist") ? "FOUND I moved" : "FOUND 我把");
    }
    await screen.say("/sessions");
    await screen.waitFor("Resume");
    await screen.type("lighthouses in genoa");
    await screen.waitFor("Describe the lighthouse");
  });
});
