// `display.personality`: the faces of the spinner and the name at answers. What a personality tells the model is not said here.
import { cut, type Look, printable } from "../../terminal-text.ts";

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
