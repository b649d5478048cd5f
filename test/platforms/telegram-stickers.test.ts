// Stickers of Telegram through the real gateway: described by a model that sees, once each, and kept in the home.
import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { startGateway } from "../support/gateway-rig.ts";
import type { Reply } from "../support/model-server/script.ts";
import { saidIn, type TelegramWorld, telegramWorld } from "../support/platforms/telegram-rig.ts";
import type { Person, Room } from "../support/platforms/telegram-world.ts";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

describe("stickers on Telegram", () => {
  let one: TelegramWorld;
  let chat: Room;
  /** What the seeing model was asked, in order. */
  let looks: string[];
  /** What turns were told; each is answered by its number. */
  let heard: string[];
  let sees: () => Reply;

  before(async () => {
    one = await telegramWorld({ config: "display:\n  busy_input_mode: queue\n" });
    chat = one.telegram.dm(one.ada);
    looks = [];
    heard = [];
    sees = () => ({ text: "A cat\nthat waves]" });
    one.model.clear().otherwise((request) => {
      if (request.body.tools?.length) return { text: `answer ${heard.push(saidIn(request))}` };
      const content: unknown = request.body.messages.at(-1)?.content;
      if (!JSON.stringify(content).includes("image_url")) return { text: "A title" };
      looks.push(saidIn(request));
      return sees();
    });
  });
  after(() => one[Symbol.asyncDispose]());

  interface Sent {
    readonly unique: string;
    readonly more?: Readonly<Record<string, unknown>>;
    readonly bytes?: Buffer;
    readonly from?: Person;
    readonly room?: Room;
  }

  function send({ unique, more = {}, bytes = PNG, from = one.ada, room = chat }: Sent): void {
    const file = { file_id: one.telegram.keepFile(bytes, `stickers/${unique}.webp`), file_unique_id: unique };
    const look = { width: 90, height: 60, type: "regular", is_animated: false, is_video: false };
    room.say(from, { sticker: { ...file, ...look, file_size: bytes.length, emoji: "👋", set_name: "Waves", ...more } });
  }

  /** What the turn of a sticker was told, when its answer is there. */
  async function told(sent: Sent): Promise<string> {
    const turn = heard.length;
    send(sent);
    await chat.shows(new RegExp(`answer ${turn + 1}$`));
    return heard[turn] ?? "";
  }

  test("a sticker is described once, and known from then on, also after a restart", async () => {
    const described = '[sticker 👋 from "Waves": A cat that waves]';
    assert.equal(await told({ unique: "still" }), described);
    assert.equal(await told({ unique: "still" }), described);
    assert.equal(looks.length, 1);
    assert.equal(one.telegram.of("getFile").length, 1, "whose words are known needs no file");
    assert.match(looks[0] ?? "", /a sticker from a chat/);
    const cache = one.home.at("sticker_cache.json");
    assert.equal(JSON.parse(await readFile(cache, "utf8")).still.description, "A cat that waves");
    assert.equal((await stat(cache)).mode & 0o777, 0o600);
    await one.gateway.stop();
    one.gateway = await startGateway(one.home);
    assert.equal(await told({ unique: "still" }), described);
    assert.equal(looks.length, 1, "nobody looks at it again");
    assert.ok(!one.lastSent().includes("image_url"), "the words stand for the picture");
  });

  test("what moves is shown by its first picture; without one it is named and saved", async () => {
    const before = looks.length;
    const thumbnail = {
      file_id: one.telegram.keepFile(PNG, "thumbnails/a.webp"),
      file_unique_id: "t",
      width: 9,
      height: 6,
    };
    const tgs = Buffer.from("\x1f\x8b moving", "latin1");
    const animated = await told({ unique: "moving", bytes: tgs, more: { is_animated: true, thumbnail } });
    assert.equal(animated, '[sticker 👋 from "Waves": A cat that waves]');
    assert.equal(looks.length, before + 1);
    const bare = await told({ unique: "bare", bytes: tgs, more: { is_animated: true } });
    assert.match(bare, /^\[sticker 👋 from "Waves"\]\n\[Document: sticker\.tgs \(application\/gzip, 1 KB\), saved at /);
    assert.equal(looks.length, before + 1);
  });

  test("where nobody can look, its emoji and set stay, and it is asked about again the next time", async () => {
    const before = looks.length;
    sees = () => ({ fault: "status", status: 400, body: { error: { message: "no pictures here" } } });
    const words = await told({ unique: "unseen" });
    assert.match(words, /^\[sticker 👋 from "Waves"; its picture is saved at \S+\.png\]$/);
    assert.equal(looks.length, before + 1, "asked once");
    sees = () => ({ text: "A dog" });
    assert.equal(await told({ unique: "unseen" }), '[sticker 👋 from "Waves": A dog]');
  });

  test("nobody looks at the sticker of a stranger", async () => {
    const before = looks.length;
    const fetched = one.telegram.of("getFile").length;
    const eve = one.telegram.person("Eve");
    send({ unique: "strange", from: eve, room: one.telegram.dm(eve) });
    // Updates are read in their order.
    assert.match(await told({ unique: "still" }), /A cat that waves/);
    assert.equal(looks.length, before);
    assert.equal(one.telegram.of("getFile").length, fetched, "that of a person we know is known in words");
    assert.ok(!(await readFile(one.home.at("sticker_cache.json"), "utf8")).includes("strange"));
  });
});
