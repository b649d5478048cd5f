// What a chat sees of a turn while it runs, through the real gateway: text as it is written, tools at work, files, voice.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { answerTurns, lastSaid } from "./support/gateway-rig.ts";
import { Garden } from "./support/platforms/discord-garden.ts";

describe("a chat while the model answers", () => {
  let garden: Garden;
  const ends: (() => unknown)[] = [];
  const heard: string[] = [];
  const said: string[] = [];

  before(async () => {
    const ears = createServer(async (request, response) => {
      const spoken: string[] = [];
      for await (const chunk of request) spoken.push(String(chunk));
      if (request.url === "/v1/audio/speech") {
        said.push(JSON.parse(spoken.join("")).input);
        return response.end(Buffer.from("ID3 a sound"));
      }
      heard.push(...spoken);
      response.end('{"text":"what is a heron"}');
    });
    await new Promise<void>((resolve) => ears.listen(0, "127.0.0.1", resolve));
    ends.push(() => ears.close());
    const { port } = ears.address() as AddressInfo; // it listens on a port
    garden = await Garden.open(
      { after: (work) => ends.push(work) },
      {
        config:
          "streaming: { enabled: true, edit_interval: 0.1 }\ndisplay: { tool_progress: all, cleanup_progress: true }\n" +
          `stt: { base_url: "http://127.0.0.1:${port}/v1", api_key: k-123456789 }\n` +
          `tts: { base_url: "http://127.0.0.1:${port}/v1", api_key: k-123456789 }\n`,
      },
    );
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  test("text grows in its message, tools are named, tags are never seen, and the answer stands in its last form", async () => {
    const { discord, alice, model, home } = garden;
    const chat = discord.dm(alice);
    await home.write("cache/images/heron.png", "x");
    const answer =
      "A heron is a bird. It is grey and tall.\n\n" +
      `MEDIA:${home.at("cache/images/heron.png")}\n\nIt eats fish, frogs and more, every day of the year.`;
    const path = home.at("config.yaml");
    answerTurns(model, (request) =>
      lastSaid(request).includes("tell me about herons")
        ? { text: "Let me look first.", toolCalls: [{ name: "read_file", arguments: { path } }] }
        : { text: answer, chunk: 6, pace: 40 },
    );
    const seen = new Set<string>();
    const watching = setInterval(() => {
      for (const text of garden.answers(chat)) seen.add(text);
    }, 10);
    discord.write(alice, chat, "tell me about herons");
    await discord.until(() => discord.saidIn(chat).some(({ files }) => files.length > 0), "the picture");
    await discord.until(() => !garden.answers(chat).some((text) => text.startsWith("📖")), "the end of the bubble");
    clearInterval(watching);
    const final = answer.replace(/MEDIA:\S+\n\n/, "");
    assert.deepEqual(garden.answers(chat), ["Let me look first.", final, ""]);
    const shown = [...seen];
    assert.ok(shown.some((text) => /^📖 read_file: `/.test(text)));
    const parts = shown.filter((text) => text.endsWith(" ▉") && text.startsWith("A her"));
    assert.ok(parts.length > 3, shown.join(" | "));
    for (const text of parts) assert.ok(final.startsWith(text.slice(0, -2)), text);
    assert.doesNotMatch(shown.join(), /MEDIA/);
  });

  test("a voice message is heard, and its words are what the model is told", async () => {
    const { discord, bob, model } = garden;
    const chat = discord.dm(bob);
    answerTurns(model, () => ({ text: "A bird." }));
    const files = [{ name: "voice-message.ogg", bytes: Buffer.from("OggS\0\x02abc"), contentType: "audio/ogg" }];
    discord.write(bob, chat, "", { files, extra: { flags: 8192 } });
    await garden.answer(chat, "A bird.");
    assert.equal(garden.turns().at(-1)?.body.messages.at(-1)?.content, "[Voice message] what is a heron");
    assert.match(heard.join(""), /filename="[0-9a-f]{32}\.ogg"/);
  });

  test("/voice: voice messages are answered aloud, or every answer, or none", async () => {
    const { discord, bob, model, home } = garden;
    const chat = discord.dm(bob);
    const sounds = () => discord.saidIn(chat).flatMap(({ files }) => files.map(({ name }) => name.slice(-4)));
    const reply = (words: string) => `**Grey** \`x\` ${words}\n\n\`\`\`\ncode\n\`\`\``;
    answerTurns(model, (request) => ({ text: reply(lastSaid(request)) }));
    discord.write(bob, chat, "/voice on");
    await garden.answer(chat, "Voice messages are answered aloud here.");
    discord.write(bob, chat, "silent please");
    await garden.answer(chat, reply("silent please"));
    assert.deepEqual(said, []);
    const files = [{ name: "voice-message.ogg", bytes: Buffer.from("OggS\0\x02abd"), contentType: "audio/ogg" }];
    discord.write(bob, chat, "", { files, extra: { flags: 8192 } });
    await garden.answer(chat, reply("[Voice message] what is a heron"));
    assert.deepEqual(said, ["Grey x [Voice message] what is a heron"]);
    discord.write(bob, chat, "/voice tts");
    await garden.answer(chat, "Every answer is read aloud here.");
    discord.write(bob, chat, "aloud");
    await garden.answer(chat, reply("aloud"));
    assert.equal(said.length, 2);
    await discord.until(() => sounds().join() === ".mp3,.mp3", `two sounds: ${sounds().join()}`);
    discord.write(bob, chat, "/voice off");
    await garden.answer(chat, "Answers are not read aloud here.");
    const stored = JSON.parse(await readFile(home.at("gateway_voice_mode.json"), "utf8"));
    assert.deepEqual(Object.values(stored), ["off"]);
  });

  test("a silent answer leaves nothing behind, and one that is cut off says so", async () => {
    const { discord, alice, model } = garden;
    const chat = discord.channel(garden.guild, "quiet");
    const write = (text: string) => discord.write(alice, chat, `${garden.call} ${text}`);
    const half = "Half of an answer that never ends. ".repeat(4);
    answerTurns(model, (request) => {
      if (lastSaid(request).includes("nothing to say?")) return { text: "[SILENT]", chunk: 1, pace: 30 };
      if (lastSaid(request).includes("and now?")) return { text: "Now I do." };
      return { fault: "stall", after: 12, answer: { text: half } };
    });
    write("nothing to say?");
    const thread = await discord.until(() => discord.threadsOf(chat)[0], "a thread");
    await discord.until(() => garden.asked("nothing to say?").length > 0, "the question");
    discord.write(alice, thread, "/queue and now?");
    await discord.until(() => garden.answers(thread).includes("Now I do."), "an answer");
    assert.doesNotMatch(garden.answers(thread).join(), /silent/i);
    discord.write(alice, thread, "go on");
    await discord.until(() => garden.answers(thread).some((text) => text.endsWith(" ▉")), "half a message");
    discord.write(alice, thread, "/stop");
    await discord.until(() => garden.answers(thread).some((text) => text.endsWith("\n\n(stopped)")), "its mark");
  });
});
