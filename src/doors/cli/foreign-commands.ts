// Commands that users of other agents, and of the Python original, type out of habit: what does the same here.

const HABITS: Readonly<Record<string, string>> = {
  ask: "hermes -z PROMPT answers one prompt",
  cd: "start hermes in the folder you want to work in",
  clear: "hermes starts a new conversation; hermes sessions prune removes old ones",
  commit: 'ask for it: hermes -z "commit my changes"',
  continue: "hermes --continue resumes the latest conversation",
  cost: "hermes usage shows tokens and cost",
  edit: "hermes config edit opens the settings",
  env: "hermes config set NAME VALUE saves a key in .env",
  exec: "hermes -z PROMPT runs one task; hermes batch runs many",
  export: "hermes sessions export FILE",
  history: "hermes sessions list",
  init: "start hermes and ask it to write an AGENTS.md for this folder",
  keys: "hermes auth list shows saved keys, hermes config show the others",
  list: "hermes sessions list",
  migrate: "hermes config migrate",
  models: "hermes model",
  new: "hermes starts a new conversation",
  permissions: "hermes approvals, hermes trust",
  print: "hermes -z PROMPT prints one answer",
  provider: "hermes model chooses provider and model",
  providers: "hermes model chooses provider and model",
  restore: "hermes import ZIP restores a backup, hermes sessions restore FILE the conversations",
  resume: "hermes --resume ID resumes a conversation, hermes --continue the latest one",
  rollback: "/rollback in the conversation; hermes checkpoints status",
  run: "hermes -z PROMPT runs one task and prints the answer",
  search: "hermes sessions search WORDS",
  session: "hermes sessions",
  settings: "hermes config show, hermes config set KEY VALUE",
  stats: "hermes insights, hermes usage",
  tui: "hermes opens the screen",
  uninstall: "npm uninstall -g hermes-ts removes the program; your data stays in ~/.hermes",
  upgrade: "hermes update",
};

/** Commands of the Python original that are not part of this version. */
const LATER = new Set("claw curator dashboard honcho lsp proxy secrets serve slack whatsapp".split(" "));

/** One sentence, or null when the word means nothing here. */
export function habitHint(word: string): string | null {
  if (/\s/.test(word)) return `To ask one question: hermes -z ${JSON.stringify(word)}`;
  const name = word.toLowerCase();
  if (Object.hasOwn(HABITS, name)) return `In Hermes: ${HABITS[name]}.`;
  return LATER.has(name) ? "Not available in this version yet." : null;
}

/** Names for the same thing inside a group of commands. */
const SYNONYMS: readonly (readonly string[])[] = [
  ["list", "ls", "all"],
  ["remove", "delete", "rm", "del", "uninstall"],
  ["add", "create", "new", "install"],
  ["show", "view", "get", "cat", "info", "inspect"],
  ["enable", "on", "start"],
  ["disable", "off", "stop"],
  ["update", "upgrade"],
  ["search", "find", "grep"],
];

/** Those of `names` that mean the same as the word. */
export function synonymsOf(word: string, names: readonly string[]): readonly string[] {
  const same = SYNONYMS.find((group) => group.includes(word.toLowerCase())) ?? [];
  return names.filter((name) => same.includes(name));
}
