// Chats through the real gateway: messages that come in are answered once, in order, by the right conversation.
import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { answerTurns, type GatewayHomeOptions, gatewayHome, lastSaid, ModelServer, startGateway, until } from "./support/gateway-rig.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import { repository } from "./support/run-hermes.ts";
import type { TempHome } from "./support/temp-home.ts";

const PLUGIN = "plugins:\n  enabled: [paper]\n";

/** A home whose platform is the example of the guide. */
async function paperHome(
  model: ModelServer,
  paper: PaperServer,
  { env = {}, config = "", ...more }: Partial<GatewayHomeOptions> = {},
): Promise<TempHome> {
  const home = await gatewayHome(model, { env: { ...paper.env, ...env }, config: PLUGIN + config, ...more });
  await cp(join(repository, "docs", "example-platform"), home.at("plugins", "paper"), { recursive: true });
  return home;
}

describe("a chat", () => {
  let model: ModelServer;
  let paper: PaperServer;
  before(async () => {
    model = await ModelServer.start();
    paper = await PaperServer.start();
  });
  after(async () => {
    await paper.close();
    await model.close();
  });

  test("a message is answered, and the next one finds the conversation where it was", async () => {
    answerTurns(model, (request) => ({ text: lastSaid(request).includes("Who") ? "Your name is Ann" : "Hello Ann" }));
    await using home = await paperHome(model, paper);
    const gateway = await startGateway(home);
    try {
      paper.say("ann", "I am Ann");
      await until("an answer", () => paper.textsOf("ann").includes("Hello Ann"));
      paper.say("ann", "Who am I?");
      await until("a second answer", () => paper.textsOf("ann").includes("Your name is Ann"));
      const asked = model.requests.filter(({ body }) => JSON.stringify(body).includes("Who am I?"));
      assert.ok(JSON.stringify(asked[0]?.body.messages).includes("I am Ann"), "the first exchange is in the second request");
    } finally {
      const { code, stderr } = await gateway.stop();
      assert.equal(code, 0, stderr + gateway.lines.join("\n"));
    }
  });
});
