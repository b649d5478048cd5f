// Questions as blocks with buttons, and the commands an app of Slack has.
import type { ChoiceButton } from "../../contract.ts";
import { toMrkdwn } from "./markdown.ts";

/** What Slack takes: signs in a section, in a button, buttons in a row. */
const LIMITS = { section: 3000, label: 75, row: 25, value: 2000 };

interface Section {
  readonly type: "section";
  readonly text: { readonly type: "mrkdwn"; readonly text: string };
}
interface Row {
  readonly type: "actions";
  readonly elements: readonly {
    readonly type: "button";
    readonly action_id: string;
    readonly text: { readonly type: "plain_text"; readonly text: string };
    readonly value: string;
    readonly style?: "primary" | "danger";
  }[];
}

export function questionBlocks(
  text: string,
  question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
): (Section | Row)[] {
  const sections = inPieces(toMrkdwn(text), LIMITS.section).map(
    (piece): Section => ({ type: "section", text: { type: "mrkdwn", text: piece } }),
  );
  const buttons = question.buttons.map((button, at) => buttonOf(button, at, question));
  const rows: Row[] = [];
  for (let at = 0; at < buttons.length; at += LIMITS.row)
    rows.push({ type: "actions", elements: buttons.slice(at, at + LIMITS.row) });
  return [...sections, ...rows];
}

function buttonOf(
  { label, choice }: ChoiceButton,
  at: number,
  { id, buttons }: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
): Row["elements"][number] {
  const style = choice === "deny" ? "danger" : choice === "once" ? "primary" : undefined;
  return {
    type: "button",
    action_id: actionId(choice, at, buttons),
    text: { type: "plain_text", text: cut(label, LIMITS.label) },
    value: JSON.stringify([id, choice]).slice(0, LIMITS.value),
    ...(style ? { style } : {}),
  };
}

/** The names that existing apps know for approvals and confirmations; each is there once in a message. */
function actionId(choice: string, at: number, buttons: readonly ChoiceButton[]): string {
  const offers = (one: string) => buttons.some((button) => button.choice === one);
  if (offers("deny") && /^(?:once|session|always)$/.test(choice)) return `hermes_approve_${choice}`;
  if (choice === "deny") return "hermes_deny";
  if (offers("cancel") && /^(?:once|always|cancel)$/.test(choice)) return `hermes_confirm_${choice}`;
  return `hermes_choice_${at}`;
}

/** Null: not a button of ours. */
export function choiceOf(actionId: string, value: string): { readonly id: string; readonly choice: string } | null {
  if (!actionId.startsWith("hermes_")) return null;
  try {
    const parsed: unknown = JSON.parse(value);
    if (!Array.isArray(parsed)) return null;
    const [id, choice] = parsed;
    return typeof id === "string" && typeof choice === "string" ? { id, choice } : null;
  } catch {
    return null; // somebody else's value
  }
}

/** Words that Slack keeps for itself. */
const TAKEN = new Set(
  "me status away dnd shrug remind msg feed who collapse expand leave join open search topic mute pro shortcuts".split(
    " ",
  ),
);
const MAX_COMMANDS = 50;

interface SlackCommand {
  readonly command: string;
  readonly description: string;
  readonly usage_hint?: string;
}

/** The slash commands of an app manifest: `/hermes` takes all of them, so what does not fit is not lost. */
export function slackCommands(
  commands: readonly { readonly name: string; readonly description: string }[],
): SlackCommand[] {
  const names = new Set<string>(["hermes"]);
  const others = commands.filter(({ name }) => {
    const isNew = /^[a-z0-9][a-z0-9_-]{0,30}$/.test(name) && !TAKEN.has(name) && !names.has(name);
    if (isNew) names.add(name);
    return isNew;
  });
  return [
    { command: "/hermes", description: "Any command of Hermes", usage_hint: "help" },
    ...others.map(({ name, description }) => ({ command: `/${name}`, description })),
  ].slice(0, MAX_COMMANDS);
}

const cut = (text: string, max: number) => (text.length <= max ? text : `${text.slice(0, max - 1)}…`);

/** Cut behind lines where there are any; no pair of surrogates is parted. */
function inPieces(text: string, max: number): string[] {
  const pieces: string[] = [];
  for (let rest = text; rest !== ""; ) {
    if (rest.length <= max) return [...pieces, rest];
    const line = rest.lastIndexOf("\n", max);
    const high = rest.charCodeAt(max - 1);
    const at = line > max / 2 ? line : high >= 0xd800 && high < 0xdc00 ? max - 1 : max;
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at).replace(/^\n/, "");
  }
  return pieces.length > 0 ? pieces : [" "];
}
