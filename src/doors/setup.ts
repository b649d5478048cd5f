// Setup: its sections, the order they come in, and what is said at the end. How questions look is up to the surface.
import { chooseTarget } from "../agent/open-model.ts";
import { windowText } from "../agent/usage-meter.ts";
import type { PickItem } from "../commands/context.ts";
import { NEW_CONFIG } from "../home/config/schema.ts";
import { mirroredVariable } from "../home/config/set-key.ts";
import { loadYaml, parseText } from "../home/config/yaml-text.ts";
import type { OpenHome } from "../home/open.ts";
import { isUsableKey } from "../llm/providers/keys.ts";
import { cleanUrl } from "../llm/providers/resolve.ts";
import { mapping, ProviderError, text as textOf } from "../llm/providers/settings.ts";
import { placeOf } from "../llm/wire.ts";
import { inspectPlace } from "../sandbox/open.ts";
import { SetupCancelled, type SetupParts, SetupSkipped, setUpModel } from "./setup-model.ts";

export const SECTIONS = ["model", "tts", "terminal", "gateway", "tools", "agent"] as const;
export type Section = (typeof SECTIONS)[number];

export interface Setup extends SetupParts {
  /** Which toolsets are on; each surface has its own list for that. */
  tools(): Promise<void>;
  /** Chats: a door of their own, with steps of their own. */
  gateway(): Promise<void>;
}

interface SetupResult {
  /** What was saved, in order. */
  readonly saved: readonly Section[];
  readonly connected: { readonly provider: string; readonly model: string } | null;
  /** The user left before the end. */
  readonly cancelled: boolean;
}

/** Runs one section, what is missing (`quick`), or what the user picks. Never rejects because the user left: Esc skips a step, Ctrl+C leaves. */
export async function runSetup(
  setup: Setup,
  request: { readonly section?: Section | undefined; readonly quick?: boolean | undefined },
): Promise<SetupResult> {
  const saved: Section[] = [];
  let connected: SetupResult["connected"] = null;
  const run = async (section: Section) => {
    if (section === "model") connected = await setUpModel(setup);
    else if (section === "tools" || section === "gateway") await setup[section]();
    else await OWN_STEPS[section](setup);
    saved.push(section);
  };
  try {
    if (request.section) await run(request.section);
    else await runAsked(setup, request.quick === true, run);
    return { saved, connected, cancelled: false };
  } catch (error) {
    if (!(error instanceof SetupCancelled) && !setup.surface.signal.aborted) throw error;
    return { saved, connected, cancelled: true };
  }
}

/** One step of several: true unless it was skipped. */
async function offer(section: Section, run: (section: Section) => Promise<void>): Promise<boolean> {
  try {
    await run(section);
    return true;
  } catch (error) {
    if (error instanceof SetupSkipped) return false;
    throw error;
  }
}

async function runAsked(setup: Setup, quick: boolean, run: (section: Section) => Promise<void>): Promise<void> {
  const { home, surface } = setup;
  const works = await workingModel(home);
  if (quick) {
    if (works === null) return run("model");
    return surface.say("Nothing is missing.");
  }
  if (works !== null) return menu(setup, run);
  const whole = await surface.pick({
    title: "Welcome to Hermes. What do you want to set up?",
    choices: [
      { label: "Quick: connect a model", hint: "a provider, its key, a model", value: false },
      { label: "Everything", hint: "model, speech, terminal, chats, tools, agent", value: true },
    ],
  });
  if (!whole) return run("model");
  for (const section of SECTIONS) if (!(await offer(section, run))) surface.say(`Skipped: ${section}.`);
}

async function menu(setup: Setup, run: (section: Section) => Promise<void>): Promise<void> {
  const { home, surface } = setup;
  for (let selected = 0; ; ) {
    const { terminal, agent, tts } = home.config();
    const choices: PickItem<Section | null>[] = [
      { label: "Model", hint: (await workingModel(home)) ?? "not connected", value: "model" },
      {
        label: "Speech",
        hint: textOf(mapping(tts).provider) ?? textOf(mapping(tts).base_url) ?? "not set",
        value: "tts",
      },
      { label: "Terminal", hint: (await inspectPlace(terminal, home.environment())).line, value: "terminal" },
      { label: "Chats", hint: "Telegram, Discord, Slack and others", value: "gateway" },
      { label: "Tools", hint: "choose toolsets", value: "tools" },
      { label: "Agent", hint: `at most ${agent.max_turns} steps a turn`, value: "agent" },
      { label: "Done", value: null },
    ];
    const section = await surface.pick({ title: "Setup", choices, selected }).catch((error: unknown) => {
      if (error instanceof SetupSkipped) return null; // Esc in the menu itself: done
      throw error;
    });
    if (section === null) return;
    const isDone = await offer(section, run);
    selected = isDone ? choices.length - 1 : choices.findIndex(({ value }) => value === section);
  }
}

/** The model that answers now; null while it is the demo or one that cannot be used. */
export async function workingModel(home: OpenHome): Promise<string | null> {
  try {
    const { target, demo } = await chooseTarget(home, {});
    return demo ? null : `${target.model} at ${placeOf(target)}, ${windowText(target)}`;
  } catch (error) {
    if (error instanceof ProviderError) return null;
    throw error;
  }
}

// Where commands run.

type Place = "auto" | "on" | "off" | "docker" | "ssh";

async function setUpTerminal({ home, surface }: Setup): Promise<void> {
  const { terminal } = home.config();
  const { problem } = await inspectPlace({ ...terminal, backend: "local", sandbox: "auto" }, home.environment());
  const works = problem ? `not here: ${problem.reason}` : "available";
  const place = await surface.pick<Place>({
    title: "Where should the agent's commands run? A sandbox hides your keys and only allows writing to the project.",
    choices: [
      { label: "In a sandbox, if available", hint: `recommended; ${works}`, value: "auto" },
      { label: "Only in a sandbox", hint: works, value: "on" },
      { label: "On this machine, with your full permissions", hint: "no sandbox", value: "off" },
      { label: "In a Docker container", hint: terminal.docker_image, value: "docker" },
      { label: "On another machine, over SSH", hint: terminal.ssh_host, value: "ssh" },
    ],
  });
  if (place === "docker" || place === "ssh") {
    const ssh = place === "ssh" ? await askForHost({ home, surface }) : {};
    await write(home, { "terminal.backend": place, ...ssh });
    return surface.say(`✓ Commands run ${place === "ssh" ? `on ${ssh["terminal.ssh_host"]}` : "in a container"}.`);
  }
  const network =
    place === "off"
      ? null
      : await surface.pick({
          title: "Network inside the sandbox?",
          choices: [
            { label: "On", value: "on" },
            { label: "Off", hint: "allow hosts later with terminal.sandbox_network", value: "off" },
          ],
        });
  await write(home, {
    "terminal.backend": "local",
    "terminal.sandbox": place,
    ...(network === null ? {} : { "terminal.sandbox_network": network }),
  });
  const { line } = await inspectPlace(home.config().terminal, home.environment());
  surface.say(`✓ Commands run: ${line}.`);
}

async function askForHost({ home, surface }: Pick<Setup, "home" | "surface">): Promise<Record<string, string>> {
  const { ssh_host, ssh_user } = home.config().terminal;
  const host = await withDefault(surface, "Host", ssh_host);
  const user = await withDefault(surface, "User", ssh_user);
  return { "terminal.ssh_host": host, "terminal.ssh_user": user };
}

async function withDefault(surface: Setup["surface"], name: string, present: string): Promise<string> {
  for (;;) {
    const typed = (await surface.ask(`${name}${present ? ` (Enter = ${present})` : ""}: `)).trim() || present;
    if (typed !== "") return typed;
  }
}

/** Settings that the Python original reads from variables are written there too. */
async function write(home: OpenHome, values: Readonly<Record<string, unknown>>): Promise<void> {
  await home.setConfigKeys(values, { backup: true });
  for (const [path, value] of Object.entries(values)) {
    const mirror = mirroredVariable(path.split("."));
    if (mirror !== null) await home.setEnv(mirror, String(value));
  }
}

// How the agent works.

async function setUpAgent({ home, surface }: Setup): Promise<void> {
  const { agent, compression, display } = home.config();
  const turns = await askNumber(
    surface,
    "Maximum steps per turn",
    agent.max_turns,
    (n) => Number.isInteger(n) && n > 0,
  );
  const modes = [
    { label: "all", hint: "every tool call", value: "all" },
    { label: "new", hint: "only when the tool changes", value: "new" },
    { label: "off", hint: "none", value: "off" },
    { label: "verbose", hint: "with arguments and results", value: "verbose" },
  ];
  const progress = await surface.pick({
    title: "Which tool calls are shown?",
    choices: modes,
    selected: Math.max(
      0,
      modes.findIndex(({ value }) => value === display.tool_progress),
    ),
  });
  const threshold = await askNumber(
    surface,
    "Compress a conversation when it fills this share of the context window",
    compression.threshold,
    (n) => n > 0 && n <= 1,
  );
  await write(home, {
    "agent.max_turns": turns,
    "display.tool_progress": progress,
    "compression.threshold": threshold,
  });
  surface.say(
    `✓ Up to ${turns} steps a turn, tool calls: ${progress}, compression at ${Math.round(threshold * 100)} %.`,
  );
}

async function askNumber(
  surface: Setup["surface"],
  what: string,
  present: number,
  fits: (value: number) => boolean,
): Promise<number> {
  for (;;) {
    const typed = (await surface.ask(`${what} (Enter = ${present}): `)).trim();
    const value =
      typed === ""
        ? present
        : Number(typed.replace(/^(\d+)\s*%$/, (_, percent: string) => String(Number(percent) / 100)));
    if (fits(value)) return value;
    surface.warn(`${typed} is not valid here.`);
  }
}

// Who speaks: `text_to_speech` makes sound files.

const SPEAKERS = {
  openai: { label: "OpenAI", keyEnv: "OPENAI_API_KEY" },
  elevenlabs: { label: "ElevenLabs", keyEnv: "ELEVENLABS_API_KEY" },
} as const;
/** The variable of a server of the user's own, which config.yaml names. */
const OWN_SPEECH_KEY = "TTS_API_KEY";

async function setUpSpeech({ home, surface }: Setup): Promise<void> {
  const keyHint = (name: string) => (isUsableKey(home.env(name)) ? `key found: ${name}` : `needs ${name}`);
  const speaker = await surface.pick<keyof typeof SPEAKERS | "own" | "none">({
    title: "Which service turns text into speech?",
    choices: [
      { label: SPEAKERS.openai.label, hint: keyHint(SPEAKERS.openai.keyEnv), value: "openai" },
      { label: SPEAKERS.elevenlabs.label, hint: keyHint(SPEAKERS.elevenlabs.keyEnv), value: "elevenlabs" },
      { label: "A server of your own", hint: "OpenAI-compatible, by URL", value: "own" },
      { label: "None", hint: "remove the setting", value: "none" },
    ],
  });
  const fresh = { "tts.provider": undefined, "tts.base_url": undefined, "tts.api_key": undefined };
  if (speaker === "none") {
    await write(home, fresh);
    return surface.say("✓ No speech service is set.");
  }
  const url = speaker === "own" ? await askForUrl(surface) : null;
  const { label, keyEnv } =
    speaker === "own" ? { label: new URL(url ?? "").host, keyEnv: OWN_SPEECH_KEY } : SPEAKERS[speaker];
  const key = await askForSpeechKey({ home, surface }, { label, keyEnv, needed: url === null });
  if (key !== null) await home.setEnv(keyEnv, key);
  const own = { "tts.base_url": url, ...(isUsableKey(home.env(keyEnv)) ? { "tts.api_key": `\${${keyEnv}}` } : {}) };
  await write(home, { ...fresh, ...(url === null ? { "tts.provider": speaker } : own) });
  surface.say(`✓ ${label} speaks. The first use will show whether it works.`);
}

async function askForUrl(surface: Setup["surface"]): Promise<string> {
  for (;;) {
    const typed = (await surface.ask("Server URL, e.g. http://127.0.0.1:8880/v1: ")).trim();
    try {
      return cleanUrl(typed);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      surface.warn(error.message);
    }
  }
}

/** Null: what is set stays. */
async function askForSpeechKey(
  { home, surface }: Pick<Setup, "home" | "surface">,
  { label, keyEnv, needed }: { readonly label: string; readonly keyEnv: string; readonly needed: boolean },
): Promise<string | null> {
  const isSet = isUsableKey(home.env(keyEnv));
  const otherwise = isSet ? `; Enter = keep ${keyEnv}` : needed ? "" : "; Enter = no key needed";
  for (;;) {
    const typed = (await surface.ask(`API key for ${label} (not shown${otherwise}): `, { hidden: true })).trim();
    if (typed !== "") return typed;
    if (isSet || !needed) return null;
  }
}

const OWN_STEPS = { tts: setUpSpeech, terminal: setUpTerminal, agent: setUpAgent } as const;

// Back to the defaults.

/** Takes every setting out of config.yaml, as in a new home; a copy of the file stays beside it, keys in .env stay. */
export async function resetSettings(home: OpenHome): Promise<void> {
  const parsed = parseText(await loadYaml(), NEW_CONFIG);
  const fresh = parsed.ok ? parsed.tree : {};
  const gone = Object.keys(home.configTree() ?? {}).filter((key) => !key.includes("."));
  await home.setConfigKeys({ ...Object.fromEntries(gone.map((key) => [key, undefined])), ...fresh }, { backup: true });
  for (const key of Object.keys(home.configTree() ?? {})) if (key.includes(".")) await home.unsetConfigKey([key]);
}
