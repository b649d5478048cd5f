// A list that fills the terminal, answered by the keys a user would press.
import { questionPage, type ScreenQuestion } from "../../src/doors/choice-list.ts";
import { makeTheme } from "../../src/doors/terminal-text.ts";

/** What the keys take from the list, null when they leave it; `shown` sees the list before each key. */
export function pressKeys<T>(
  question: ScreenQuestion<T>,
  keys: string[],
  shown: (screen: string) => void = () => undefined,
): readonly T[] | null {
  let taken: readonly T[] | null | undefined;
  const page = questionPage(question, {
    theme: makeTheme(false),
    rows: () => 50,
    done: (values) => {
      taken = values;
    },
  });
  while (taken === undefined) {
    shown(page.render(80).join("\n"));
    page.handleInput(keys.shift() ?? "\u0003");
  }
  return taken;
}
