// The whole way of an idea: said in a chat, split, worked on side by side, asked about, answered, put together and heard of.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { lastSaid, ModelServer, startGateway, until } from "../support/gateway-rig.ts";
import type { RecordedRequest, Reply } from "../support/model-server/script.ts";
import { paperHome } from "../support/paper-home.ts";
import { PaperServer } from "../support/platforms/paper-server.ts";
import { modelConfig } from "../support/temp-home.ts";

const LONG_MS = 240_000;
const PARTS = [
  { title: "Alpha", body: "Write alpha.txt.", assignee: "coder", parents: [] },
  { title: "Beta", body: "Write beta.txt, in the right colour.", assignee: "default", parents: [] },
  { title: "Gamma", body: "Look at both.", assignee: "coder", parents: [0, 1] },
];

let model: ModelServer;
let paper: PaperServer;
before(async () => {
  model = await ModelServer.start();
  paper = await PaperServer.start();
});
after(async () => {
  await paper.close();
  await model.close();
});

test("an idea of a chat is split into three, two work side by side in worktrees, one asks, and the chat hears each of it once", {
  skip: process.platform === "win32",
}, async () => {
  const config = "kanban: {dispatch_interval_seconds: 1}\n";
  const files = { "profiles/coder/config.yaml": modelConfig(model) };
  await using home = await paperHome(model, paper, { config, gateway: "    kanban_notify: 0.2\n", files });
  const repository = join(home.osHome, "site");
  const git = (...args: string[]) => execFileSync("git", args, { cwd: repository, encoding: "utf8" });
  await mkdir(repository);
  git("init", "-q", "-b", "main");
  await writeFile(join(repository, "README.md"), "hello\n");
  git("add", "-A");
  git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first");
  const rows = (sql: string): readonly Record<string, unknown>[] => {
    const db = new DatabaseSync(home.at("kanban.db"), { readOnly: true, timeout: 10_000 });
    try {
      return db.prepare(sql).all() as Record<string, unknown>[]; // rows are objects
    } finally {
      db.close();
    }
  };
  const card = (title: string) => rows(`SELECT * FROM tasks WHERE title = '${title}'`)[0] ?? {};
  const said = () => paper.textsOf("bob").join("\n---\n");

  /** What each worker read of its card, the latest last. */
  const read = new Map<string, string[]>();
  const both = Promise.withResolvers<void>();
  const met = new Set<string>();
  const use = (name: string, args: object): Reply => ({ toolCalls: [{ name, arguments: { ...args } }] });
  async function work(request: RecordedRequest, id: string): Promise<Reply> {
    const { messages } = request.body;
    const title = String(rows(`SELECT title FROM tasks WHERE id = '${id}'`)[0]?.title);
    const step = messages.filter(({ role }: { role: string }) => role === "assistant").length;
    if (step === 0) return use("kanban_show", {});
    if (step === 1) {
      read.set(title, [...(read.get(title) ?? []), lastSaid(request)]);
      return use("terminal", {
        command: `pwd; echo ${title} >> ${title.toLowerCase()}.txt; git add -A; git status -s`,
      });
    }
    if (step > 2) return { text: "Good bye." };
    if (title === "Alpha" || title === "Beta") {
      // Neither goes on before the other is as far, and somebody saw it.
      met.add(title);
      await both.promise;
    }
    const isAnswered = read.get(title)?.at(-1)?.includes("Blue.");
    if (title === "Beta" && !isAnswered) return use("kanban_block", { reason: "Which colour?", kind: "needs_input" });
    return use("kanban_complete", { summary: `${title} is there${title === "Beta" ? ", in blue" : ""}.` });
  }
  model.clear().otherwise((request) => {
    const first = request.body.messages.find(({ role }: { role: string }) => role === "user");
    const [, id] = /work kanban task (t_[0-9a-f]{8})/.exec(JSON.stringify(first ?? {})) ?? [];
    if (request.body.tools?.length && id) return work(request, id);
    if (request.body.tools?.length) return { text: /\[Board /.test(lastSaid(request)) ? "[SILENT]" : "Hello." };
    const isSplit = String(request.body.messages[0]?.content).startsWith("You split a card");
    return { text: isSplit ? JSON.stringify({ fanout: true, rationale: "two sides", tasks: PARTS }) : "A title" };
  });

  const gateway = await startGateway(home);
  try {
    paper.say("bob", "hello");
    await until("a conversation", () => said().includes("Hello."));
    paper.say("bob", `/kanban create "The site" --triage --workspace worktree:${repository}`);
    await until("both work at a time", () => met.size === 2, LONG_MS);
    assert.deepEqual(
      rows("SELECT title, status, assignee FROM tasks ORDER BY title").map((row) => ({ ...row })),
      [
        { title: "Alpha", status: "running", assignee: "coder" },
        { title: "Beta", status: "running", assignee: "default" },
        { title: "Gamma", status: "todo", assignee: "coder" },
        { title: "The site", status: "todo", assignee: "default" },
      ],
    );
    both.resolve();
    const beta = String(card("Beta").id);
    await until("the question", () => said().includes("Which colour?"), LONG_MS);
    await until("one is done", () => card("Alpha").status === "done", LONG_MS);
    assert.deepEqual([card("Beta").status, card("Gamma").status], ["blocked", "todo"]);
    paper.say("bob", `/kanban comment ${beta} "Blue."`);
    await until("the answer", () => said().includes(`✓ ${beta} has a new comment`));
    paper.say("bob", `/kanban unblock ${beta}`);
    await until("the chat hears of the whole", () => /✔ .*“The site”/.test(said()), LONG_MS);
    await until("nothing more is to be told", () => rows("SELECT 1 FROM kanban_notify_subs").length === 0);
  } finally {
    both.resolve();
    await gateway.stop();
  }
  const ids = Object.fromEntries(
    ["Alpha", "Beta", "Gamma", "The site"].map((title) => [title, String(card(title).id)]),
  );
  const notices = paper.textsOf("bob").filter((text) => /^[⏸✔✖⏱🔄🛑]/u.test(text) && /Kanban t_/.test(text));
  const heard = notices.map((text) => text.split("\n")[0]?.replace(/^(\S+) \[default\] /, "$1 "));
  assert.deepEqual(
    heard.toSorted(),
    [
      `⏸ @default Kanban ${ids.Beta} blocked: “Which colour?” — “Beta”`,
      `✔ @coder Kanban ${ids.Alpha} done — “Alpha”`,
      `✔ @coder Kanban ${ids.Gamma} done — “Gamma”`,
      `✔ @default Kanban ${ids.Beta} done — “Beta”`,
      `✔ @default Kanban ${ids["The site"]} done — “The site”`,
    ].toSorted(),
    said(),
  );
  assert.deepEqual(
    rows("SELECT title, outcome FROM task_runs JOIN tasks ON tasks.id = task_id ORDER BY title, task_runs.id").map(
      ({ title, outcome }) => `${title}: ${outcome}`,
    ),
    ["Alpha: completed", "Beta: blocked", "Beta: completed", "Gamma: completed", "The site: completed"],
  );
  for (const title of ["Alpha", "Beta", "Gamma", "The site"]) {
    const { id, workspace_path: path, branch_name: branch } = card(title);
    assert.deepEqual([path, branch], [join(repository, ".worktrees", String(id)), `wt/${id}`]);
  }
  const lines = await readFile(join(repository, ".worktrees", String(ids.Beta), "beta.txt"), "utf8");
  assert.equal(lines, "Beta\nBeta\n", "both attempts worked in one worktree");
  assert.equal(git("status", "--porcelain"), "");
  const result = (title: string) => `result of ${ids[title]}, ${title}`;
  for (const title of ["Alpha", "Beta"]) assert.ok(read.get("Gamma")?.[0]?.includes(result(title)));
  const whole = read.get("The site")?.[0] ?? "";
  for (const [title, summary] of [
    ["Alpha", "Alpha is there."],
    ["Beta", "Beta is there, in blue."],
    ["Gamma", "Gamma is there."],
  ] as const)
    assert.ok(whole.includes(result(title)) && whole.includes(summary), `${title} reached the card that waited for it`);
  const kinds = rows(`SELECT kind FROM task_events WHERE task_id = '${ids["The site"]}' ORDER BY id`);
  assert.deepEqual(
    kinds.map(({ kind }) => kind).filter((kind) => kind !== "heartbeat"),
    ["created", "linked", "linked", "linked", "decomposed", "promoted", "claimed", "spawned", "completed"],
  );
});
