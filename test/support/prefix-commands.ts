// What a user, a model, a clock and the world around may do to a conversation.
import type fc from "fast-check";
import type { ContentPart } from "../../src/llm/messages.ts";
import type { WorkMode } from "../../src/tools/toolset/work-mode.ts";
import type { Step } from "./model-server/script.ts";
import type { ModelName, World } from "./prefix-world.ts";

type State = { said: boolean };
export type Command = fc.AsyncCommand<State, World>;

const command = (name: string, run: (world: World, state: State) => Promise<void>): Command => ({
  check: () => true,
  run: (state, world) => run(world, state),
  toString: () => name,
});
const talked = (name: string, run: (world: World) => Promise<void>): Command => ({
  check: (state) => state.said,
  run: (_state, world) => run(world),
  toString: () => name,
});
const todo = (content: string) => ({ name: "todo", arguments: { todos: [{ id: "1", content, status: "pending" }] } });
const remember = (content: string) => ({ name: "memory", arguments: { action: "add", target: "memory", content } });

export const say = (said: string) =>
  command(`say ${JSON.stringify(said)}`, async (world, state) => {
    await world.say(said, { text: "An answer.", thinking: "hm" });
    state.said = true;
  });
export const useTools = (n: number) =>
  command(`use tools ${n}`, async (world, state) => {
    await world.say(
      "do it",
      { text: "Working.", toolCalls: [todo(`a${n}`), { name: "read_file", arguments: '{"path": "AGENTS.md",' }] },
      { thinking: "hm", toolCalls: [todo(`b${n}`), remember(`fact ${n}`), { name: "no_such_tool", arguments: {} }] },
      { text: " Done. " },
    );
    state.said = true;
  });
const picture: ContentPart = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
export const showPicture = command("show a picture", async (world, state) => {
  await world.say({ text: "look", parts: [picture] }, { text: "I see." });
  state.said = true;
});
export const failingServer = talked("a server that fails", async (world) => {
  const fail: Step = (request) => {
    world.refused.add(request);
    return { fault: "status", status: 503 };
  };
  await world.say("again", fail, { text: "Now." });
});
export const changeFiles = (n: number) =>
  command(`files change ${n}`, async (world) => {
    await world.writeHome("SOUL.md", `I am somebody else, ${n}.\n`);
    await world.writeProject("AGENTS.md", `Use ${n} spaces.\n`);
    await world.writeHome("memories/MEMORY.md", `Everything is new, ${n}.\n`);
  });
export const changeSettings = (n: number) =>
  command(`settings change ${n}`, (world) =>
    world.configure({ environment_hint: `hint ${n}`, coding_instructions: `do ${n}`, tool_use_enforcement: n > 4 }),
  );
export const changeTools = (toolset: string) =>
  talked(`without ${toolset}, in another process`, async (world) => {
    world.expect("selection");
    await world.configure({ disabled_toolsets: [toolset] });
    await world.restart();
  });
export const switchTo = (model: ModelName) =>
  command(`switch to ${model}`, async (world) => void (await world.agent.switchModel({ model })));
export const switchMode = (mode: WorkMode) =>
  command(`mode ${mode}`, async (world) => {
    world.agent.workMode = mode;
  });
export const midnight = command("midnight", async (world) => world.passDays(1));
export const anotherProcess = talked("another process", (world) => world.restart());
export const undo = talked("undo", async (world) => {
  world.expect("rewind");
  await world.agent.agent.undo();
});
export const changeMood = (mood: string) =>
  command(`mood ${mood}`, async (world) => {
    world.expect("ephemeral");
    await world.configure({ system_prompt: mood });
  });

export const changeSkills = (n: number) =>
  command(`skills change ${n}`, (world) =>
    world.writeHome(
      `skills/own/habit-${n % 3}/SKILL.md`,
      `---\nname: habit-${n % 3}\ndescription: Version ${n} of it.\n---\n\nDo it ${n} times.\n`,
    ),
  );
export const learnSkill = (n: number) =>
  command(`learn skill ${n}`, async (world, state) => {
    const content = `---\nname: learned-${n}\ndescription: Learned as number ${n}.\n---\n\nStep ${n}.\n`;
    const learn = { name: "skill_manage", arguments: { action: "create", name: `learned-${n}`, content } };
    await world.say("remember how", { toolCalls: [learn] }, { text: "Kept." });
    state.said = true;
  });
export const reconnectTools = (n: number) =>
  command(`tool server ${n}`, async (world) =>
    world.connectTools(["now", "week", "month"].slice(0, n % 4), `Weather, release ${n}`),
  );
export const useForeignTool = command("use a tool of the server", async (world, state) => {
  const call = { name: "mcp_weather_now", arguments: { place: "here" } };
  await world.say("how is it outside", { toolCalls: [call] }, { text: "See above." });
  state.said = true;
});
/** Long enough that a summary is shorter. */
export const talkAtLength = async (world: World) => {
  for (const said of ["first", "second", "third"])
    await world.say(`${said}: ${"a long story, ".repeat(60)}`, { text: `Well. ${"A long answer. ".repeat(40)}` });
};
export const compress = talked("compress", async (world) => {
  await talkAtLength(world);
  if (!(await world.compress())) throw new Error("there was nothing to shorten");
});
export const undoCompression = talked("undo the compression", (world) => world.undoCompression());
