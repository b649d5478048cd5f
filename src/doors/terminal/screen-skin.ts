// The skin of the screen: which one, on which background, and how it is changed while the screen is open. The skins themselves are
// loaded behind the first frame, which has the terminal's own colours.
import type { OpenHome } from "../../home/open.ts";
import { isMissing, messageOf } from "../../kit/errors.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { cut, type Look, liveTheme, makeTheme, printable, type Theme } from "../terminal-text.ts";
import type { Rgb } from "./skins/colours.ts";
import type { Skin } from "./skins/skin.ts";

interface ScreenSkinOptions {
  readonly home: Pick<OpenHome, "config" | "paths" | "env" | "display" | "setConfigKey">;
  /** False: no colours at all. */
  readonly color: boolean;
  /** Everything has to be drawn anew. */
  onChange(): void;
  onWarning(text: string): void;
}

interface NamedSkin {
  readonly name: string;
  readonly description: string;
}

/** Longer than a terminal takes to answer. */
const ANSWER_MS = 100;
const MAX_FILE = 100_000;
const NAME = /^[\w-]{1,64}$/;

export class ScreenSkin {
  readonly theme: Theme;
  readonly #use: (next: Theme) => void;
  readonly #options: ScreenSkinOptions;
  #background: Rgb | null = null;
  #worn: Skin | null = null;
  #asked: Promise<unknown> = Promise.resolve();

  constructor(options: ScreenSkinOptions) {
    const { theme, use } = liveTheme(makeTheme(options.color), (look) =>
      withPersonality(look, options.home.config().display.personality),
    );
    this.theme = theme;
    this.#use = use;
    this.#options = options;
  }

  get present(): string {
    return this.#worn?.name ?? "default";
  }

  /** Puts the configured skin on. `ask` asks the terminal for its background; a late answer is swallowed by whoever reads the keys. */
  async start(ask: (options: { readonly timeoutMs: number }) => Promise<Background | undefined>): Promise<void> {
    const { home, color } = this.#options;
    const name = home.config().display.skin;
    if (color) {
      const { knownBackground } = await import("./skins/colours.ts");
      this.#background = knownBackground((variable) => home.env(variable));
      if (this.#background === null) {
        this.#asked = ask({ timeoutMs: ANSWER_MS }).then(
          (answer) => answer && this.#learn([answer.r, answer.g, answer.b]),
        );
      }
    }
    if (name !== "default" || this.#background !== null) {
      const problem = await this.#wear(name);
      if (problem !== null) this.#options.onWarning(`${problem} The default skin is used.`);
    }
  }

  /** Resolves once the terminal has answered, or will not. */
  async settled(): Promise<void> {
    await this.#asked;
  }

  async all(): Promise<readonly NamedSkin[]> {
    const { BUILT_IN } = await import("./skins/built-in.ts");
    const { readdir } = await import("node:fs/promises");
    const files = await readdir(this.#options.home.paths.at("skins")).catch(() => []); // none made yet
    const own = files.flatMap((file) => /^([\w-]{1,64})\.ya?ml$/.exec(file)?.[1] ?? []);
    const names = new Set(BUILT_IN.map(({ name }) => name));
    return [...BUILT_IN, ...own.filter((name) => !names.has(name)).map((name) => ({ name, description: "your own" }))];
  }

  /** Changes the skin at once and for all starts to come. Resolves to what is wrong with it, or null. */
  async wear(name: string): Promise<string | null> {
    const problem = await this.#wear(name);
    if (problem === null) await this.#options.home.setConfigKey("display.skin", name);
    return problem;
  }

  async #wear(name: string): Promise<string | null> {
    const found = await this.#find(name);
    if (typeof found === "string") return found;
    this.#worn = found;
    await this.#apply();
    return null;
  }

  async #learn(background: Rgb): Promise<void> {
    this.#background = background;
    await this.#apply();
  }

  async #apply(): Promise<void> {
    const { home, color } = this.#options;
    const { BUILT_IN } = await import("./skins/built-in.ts");
    const { skinTheme } = await import("./skins/skin.ts");
    const { depthOf } = await import("./skins/colours.ts");
    const skin = this.#worn ?? BUILT_IN.find((one) => one.name === "default");
    if (!skin) return;
    const depth = color ? depthOf((variable) => home.env(variable)) : 0;
    this.#use(skinTheme(skin, { depth, background: this.#background }));
    this.#options.onChange();
  }

  /** The skin of that name, or a sentence that says why there is none. A file of the user's own wins over a built-in one. */
  async #find(name: string): Promise<Skin | string> {
    const { BUILT_IN } = await import("./skins/built-in.ts");
    const own = NAME.test(name) ? await this.#readOwn(name) : null;
    const found = own ?? BUILT_IN.find((skin) => skin.name === name);
    if (found) return found;
    const near = didYouMean(
      name,
      (await this.all()).map((skin) => skin.name),
    );
    const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    return `There is no skin "${name}".${hint}`;
  }

  async #readOwn(name: string): Promise<Skin | string | null> {
    const { home, onWarning } = this.#options;
    const { readFile, stat } = await import("node:fs/promises");
    const path = home.paths.at("skins", `${name}.yaml`);
    try {
      if ((await stat(path)).size > MAX_FILE) throw new Error("it is larger than 100 KB");
      const { parse } = await import("yaml");
      const { readSkin } = await import("./skins/skin.ts");
      const { skin, problems } = readSkin(name, parse(await readFile(path, "utf8"), { version: "1.1" }));
      for (const problem of problems) onWarning(`${home.display(path)}: ${problem}.`);
      return skin;
    } catch (error) {
      if (isMissing(error)) return null;
      const [reason = ""] = messageOf(error).split("\n");
      return `${home.display(path)} cannot be used: ${reason.replace(/(?<![.:])[.:]+$/, "")}.`;
    }
  }
}

interface Background {
  readonly r: number;
  readonly g: number;
  readonly b: number;
}

// `display.personality`: the faces of the spinner and the name at answers. What a personality tells the model is not said here.

/** What is set where nobody chose: faces, but no name. */
const DEFAULT = "kawaii";
const OFF: ReadonlySet<string> = new Set(["", "none", "default", "neutral"]);
const NAME_CELLS = 24;

interface Faces {
  readonly thinking: readonly string[];
  /** While a tool runs, or the answer is written. */
  readonly waiting: readonly string[];
}

/** A personality that is not here, as one of the user's own, has the plain spinner. */
const FACES: Readonly<Record<string, Faces>> = {
  kawaii: {
    thinking: ["(◕‿◕)", "(・_・)", "(￣ω￣)", "(⌒‿⌒)"],
    waiting: ["ヽ(・∀・)ﾉ", "(＾▽＾)", "(・ω・)ノ"],
  },
  catgirl: { thinking: ["(=^･ω･^=)", "(=^-ω-^=)"], waiting: ["(=^･ω･^)ﾉ", "(=^･^=)"] },
  uwu: { thinking: ["(uwu)", "(owo)"], waiting: ["(>w<)", "(^w^)"] },
  pirate: { thinking: ["(x_o)", "(x_-)"], waiting: ["(x_o)ゝ", "~(x_o)~"] },
  shakespeare: { thinking: ["(-_-)✎", "(o_o)✎"], waiting: ["(^_^)✎"] },
  surfer: { thinking: ["(⌐■_■)"], waiting: ["~(⌐■_■)~"] },
  noir: { thinking: ["(¬_¬)", "(-_-)"], waiting: ["(¬_¬)"] },
  philosopher: { thinking: ["(._.)?", "(-_-)"], waiting: ["(._.)!"] },
  hype: { thinking: ["(°o°)", "(^o^)"], waiting: ["\\(^o^)/", "ヽ(^o^)ﾉ"] },
  teacher: { thinking: ["(o_o)", "(o_-)"], waiting: ["(^_^)b"] },
  creative: { thinking: ["(*_*)", "(°_°)"], waiting: ["(^_^)*"] },
  helpful: { thinking: ["(^_^)", "(-_^)"], waiting: ["(^_^)/"] },
};

/** The look with a personality. The faces of a skin stay. */
export function withPersonality(look: Look, personality: string): Look {
  const name = cut(printable(personality).replace(/\s+/g, " ").trim(), NAME_CELLS, "…");
  const wanted = name.toLowerCase();
  if (OFF.has(wanted)) return look;
  const faces = FACES[wanted];
  return {
    ...look,
    thinkingFaces: look.thinkingFaces.length > 0 ? look.thinkingFaces : (faces?.thinking ?? []),
    waitingFaces: look.waitingFaces.length > 0 ? look.waitingFaces : (faces?.waiting ?? []),
    ...(wanted === DEFAULT ? {} : { answerLabel: `${look.answerLabel} (${name})` }),
  };
}
