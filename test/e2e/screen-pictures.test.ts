// Pictures given on the screen: every way in, on every wire, and what is left of them in a conversation that is resumed.
import assert from "node:assert/strict";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { PNG } from "pngjs";
import type { RecordedRequest } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";
import { validate } from "../support/wire-validators.ts";

const SEEN = "onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n";
const picture = (width: number) => PNG.sync.write(new PNG({ width, height: 2 }));
const [RED, GREEN, BLUE] = [picture(2), picture(3), picture(4)];
const base64 = (bytes: Buffer) => bytes.toString("base64");

/** The newest user message, whatever the wire: its text, and the pictures as the wire has them. */
function said({ wire, body }: RecordedRequest): { readonly text: string; readonly pictures: readonly unknown[] } {
  const messages: readonly { readonly role?: string; readonly content: unknown }[] =
    wire === "responses" ? body.input : body.messages;
  const content = messages.findLast(({ role }) => role === "user")?.content;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content as { type: string }[]);
  const isText = ({ type }: { type: string }) => type === "text" || type === "input_text";
  return {
    text: parts
      .filter(isText)
      .map((part) => (part as { text?: string }).text)
      .join("\n"),
    pictures: parts.filter((part) => !isText(part)),
  };
}

const asSent = {
  chat: (bytes: Buffer) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${base64(bytes)}` } }),
  anthropic: (bytes: Buffer) => ({
    type: "image",
    source: { type: "base64", media_type: "image/png", data: base64(bytes) },
  }),
  responses: (bytes: Buffer) => ({
    type: "input_image",
    image_url: `data:image/png;base64,${base64(bytes)}`,
    detail: "auto",
  }),
};

describe("pictures on the screen", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  async function folderWith(home: TempHome, files: Readonly<Record<string, Buffer | string>>): Promise<void> {
    for (const [name, bytes] of Object.entries(files)) {
      await mkdir(join(home.project, name, ".."), { recursive: true });
      await writeFile(join(home.project, name), bytes);
    }
  }
  const spoken = () => server.requests.filter(({ body }) => body.tools?.length > 0);
  const newest = () => spoken().at(-1) as RecordedRequest;

  for (const mode of ["chat_completions", "anthropic_messages", "codex_responses"] as const) {
    test(`${mode}: what is attached, dropped, pasted and pointed at arrives as the wire has it; a resumed conversation is legal`, async () => {
      await using home = await tempHome({ "config.yaml": modelConfig(server, mode) + SEEN });
      await folderWith(home, { "red.png": RED, "my green.png": GREEN, "blue.png": BLUE });
      server.otherwise({ text: "Answer given." });
      const inWireForm =
        asSent[mode === "chat_completions" ? "chat" : mode === "codex_responses" ? "responses" : "anthropic"];
      let turns = 0;
      {
        await using screen = await TerminalScreen.start(["chat", "--image", "red.png"], { home });
        await screen.waitFor("fake-model");
        const answered = () => screen.waitFor(new RegExp(`(?:Answer given\\.[^]*){${++turns}}`));
        await screen.waitFor("[📎 Image #1]", { history: false });
        await screen.say(`/image 'my green.png'`);
        await screen.waitFor(/\n\[📎 Image #1\] \[📎 Image #2\]/, { history: false });
        await screen.say("two of them");
        await answered();
        const first = newest();
        assert.deepEqual(said(first).pictures, [inWireForm(RED), inWireForm(GREEN)]);
        assert.match(said(first).text, /^two of them\n\[Attached: .*red\.png, .*my green\.png\]$/);
        assert.match(await screen.text({ history: true }), /❯ two of them \[📎 Image #1\] \[📎 Image #2\]/);

        await screen.say(`${home.project.replaceAll(" ", "\\ ")}/my\\ green.png dropped and @blue.png`);
        await answered();
        assert.deepEqual(said(newest()).pictures, [inWireForm(GREEN), inWireForm(BLUE)]);
        assert.match(said(newest()).text, /^dropped and @blue\.png\n/);

        await screen.paste(`'${join(home.project, "red.png")}' ${join(home.project, "blue.png")}`);
        await screen.waitFor(/\n\[📎 Image #5\] \[📎 Image #6\]/, { history: false });
        await screen.press("BSpace");
        await screen.waitForGone("[📎 Image #6]");
        await screen.press("C-d");
        await screen.waitFor("A picture is attached: Enter sends it, Backspace removes it.");
        await screen.press("Enter");
        await answered();
        assert.deepEqual(said(newest()).pictures, [inWireForm(RED)], "a picture alone is a message");
        await screen.press("C-d");
        assert.equal(await screen.exitCode(), 0);
      }
      for (const { wire, raw } of spoken()) validate(wire, raw);
      const { code, stdout } = await runHermes(["-z", "go on", "--continue"], { home });
      assert.deepEqual([code, stdout], [0, "Answer given.\n"]);
      validate(newest().wire, newest().raw);
      assert.match(newest().raw, /two of them\\n\[screenshot\]/);
      assert.match(newest().raw, /\[Attached: [^\]]*my green\.png\]/, "the model still knows where the files are");
      assert.doesNotMatch(newest().raw, new RegExp(base64(RED).slice(30, 60)));
    });
  }

  test("the clipboard is attached, a message with it waits where a text would be steered, /undo and /retry keep it", async () => {
    await using home = await tempHome({
      "config.yaml": `${modelConfig(server)}${SEEN}display:\n  busy_input_mode: steer\n`,
    });
    await folderWith(home, { "clip.png": BLUE, "cut.png": RED.subarray(0, 40) });
    const programs = join(home.osHome, "programs");
    const program = join(programs, "xclip");
    await mkdir(programs);
    await writeFile(
      program,
      `#!/bin/sh\ncase "$5" in\n  TARGETS) printf 'TARGETS\\nimage/png\\n';;\n  image/png) cat '${join(home.project, "clip.png")}';;\n  *) exit 1;;\nesac\n`,
    );
    await chmod(program, 0o755);
    const slow = Promise.withResolvers<void>();
    server.otherwise((request) =>
      said(request).text.startsWith("slow") ? slow.promise.then(() => ({ text: "Slow answered." })) : { text: "Seen." },
    );
    const env = { PATH: `${programs}:${process.env.PATH}`, DISPLAY: ":7" };
    await using screen = await TerminalScreen.start([], { home, env, columns: 60 });
    await screen.waitFor("fake-model");
    await screen.say("slow thing");
    await screen.waitFor("waiting for fake-model", { history: false });
    await screen.press("C-v");
    await screen.waitFor("[📎 clipboard.png]", { history: false });
    await screen.say("what is it?");
    await screen.waitFor("▶ next: what is it? [📎 1]", { history: false });
    await screen.press("Up");
    await screen.waitFor("[📎 clipboard.png]", { history: false });
    await screen.press("Enter");
    await screen.waitFor("▶ next: what is it? [📎 1]", { history: false });
    slow.resolve();
    await screen.waitFor("Seen.");
    assert.deepEqual(said(newest()).pictures, [asSent.chat(BLUE)]);
    assert.equal(said(newest()).text, "what is it?");

    await screen.say("/retry");
    await screen.waitFor(/Seen\.[\s\S]*Seen\./);
    assert.deepEqual(said(newest()), { text: "what is it?", pictures: [asSent.chat(BLUE)] });
    await screen.say("/undo now");
    await screen.waitFor("[📎 clipboard.png]", { history: false });
    await screen.press("C-c");
    await screen.waitForGone("[📎 clipboard.png]");

    await screen.say(`${join(home.project, "cut.png")} what is this?`);
    await screen.waitFor(/cut\.png\s+is\s+damaged\s+or\s+incomplete/);
    await screen.waitFor(/❯ \S*cut\.png\s+what\s+is\s+this\?/, { history: false });
    await screen.press("C-c");
    await screen.press("C-d");
    assert.equal(await screen.exitCode(), 0);
    for (const { wire, raw } of spoken()) validate(wire, raw);
  });
});
