// `/skills`, `/bundles`, `/reload-skills`: the skill library inside a conversation.

import { randomUUID } from "node:crypto";
import { plural } from "../kit/formats.ts";
import type { AgentSkills } from "../skills/open.ts";
import { type CommandContext, type CommandDefinition, typedWords } from "./context.ts";
import { approvedText, nothingOf, pendingList, switchApproval } from "./memory.ts";

const skills: CommandDefinition = {
  name: "skills",
  description: "list skills and pending skill changes",
  category: "Tools & Skills",
  argsHint: "[list|view|pending|diff|approve|reject|approval]",
  async values(typed, { conversation, platform }) {
    const { words, last } = typedWords(typed);
    const [verb] = words;
    if (verb === undefined) return null;
    const own = conversation.skills;
    if (words.length > 1 || !own) return { replaces: last, values: [] };
    if (verb === "approval") return { replaces: last, values: [{ value: "on" }, { value: "off" }] };
    if (["diff", "approve", "reject"].includes(verb)) {
      const { listPending } = await import("../skills/pending.ts");
      const waiting = (await listPending(own.context)).map(({ id }) => ({ value: id }));
      return { replaces: last, values: verb === "diff" ? waiting : [...waiting, { value: "all" }] };
    }
    const { offeredSkills } = await import("../skills/open-skill.ts");
    const { categoryLabel } = await import("../skills/snapshot.ts");
    const offered = await offeredSkills(own.context, platform);
    const names = offered.map(({ name, description }) => ({ value: name, about: description }));
    const categories = [...new Set(offered.map(({ category }) => categoryLabel(category)))].map((value) => ({ value }));
    return { replaces: last, values: verb === "list" ? categories : verb === "pending" ? [] : names };
  },
  async run(args, ctx) {
    const own = ctx.conversation.skills;
    if (!own) return ctx.warn("Skills are disabled in this conversation.");
    const [verb = "", which = ""] = args.split(/\s+/).filter((word) => word !== "");
    switch (verb.toLowerCase()) {
      case "":
      case "list":
        return list(own, which, ctx);
      case "view":
      case "inspect":
        return view(own, which, ctx);
      case "pending": {
        const { listPending } = await import("../skills/pending.ts");
        return ctx.say(pendingList(await listPending(own.context), "skills"));
      }
      case "diff":
        return diff(own, which, ctx);
      case "approve":
      case "apply":
        return approve(own, which, ctx);
      case "reject":
      case "deny":
      case "drop":
        return reject(own, which, ctx);
      case "approval":
        return switchApproval(which, "skills", ctx);
      default:
        return ctx.warn(
          `Unknown: /skills ${verb}. Use list [category], view NAME, pending, diff ID, approve ID|all, reject ID|all, approval on|off.`,
        );
    }
  },
};

async function list({ context }: AgentSkills, category: string, ctx: CommandContext): Promise<void> {
  const { offeredSkills } = await import("../skills/open-skill.ts");
  const { categoryLabel } = await import("../skills/snapshot.ts");
  const offered = await offeredSkills(context, ctx.platform);
  const wanted = offered.filter((skill) => category === "" || categoryLabel(skill.category) === category);
  if (wanted.length === 0)
    return ctx.say(category === "" ? "No skills yet." : `No skills in the category "${category}".`);
  const width = Math.max(...wanted.map(({ name }) => name.length));
  const lines: string[] = [];
  let heading = "";
  for (const skill of wanted) {
    const label = categoryLabel(skill.category);
    if (label !== heading) lines.push(label);
    heading = label;
    lines.push(
      `  ${skill.name.padEnd(width)}  ${(skill.description || skill.summary).replace(/\s+/g, " ").slice(0, 100)}`,
    );
  }
  ctx.say(`${lines.join("\n")}\nRun one with /NAME [text].`);
}

async function view({ context }: AgentSkills, name: string, ctx: CommandContext): Promise<void> {
  if (name === "") return ctx.warn("/skills view needs a name. /skills lists them.");
  const { openSkill } = await import("../skills/open-skill.ts");
  const opened = await openSkill(name, context, { platform: ctx.platform });
  if (opened.type === "refused") return ctx.warn(String(opened.result.error));
  ctx.say(`${ctx.home.display(opened.skill.dir)}\n\n${opened.text.trimEnd()}`);
}

/** An approved change counts as the user's own; it was scanned when it was made. */
async function ground(own: AgentSkills, ctx: CommandContext) {
  const { guardAgentSkill } = await import("../skills/scan/scan.ts");
  return {
    context: own.context,
    ports: { views: { wasRead: () => true }, scan: guardAgentSkill },
    run: { origin: "foreground", sessionId: ctx.conversation.agent.sessionId, taskId: randomUUID() },
  };
}

async function diff(own: AgentSkills, id: string, ctx: CommandContext): Promise<void> {
  if (id === "") return ctx.warn("/skills diff needs an id. /skills pending lists them.");
  const { diffPending } = await import("../skills/manage/manage.ts");
  ctx.say((await diffPending(id, await ground(own, ctx))) ?? nothingOf(id));
}

async function approve(own: AgentSkills, which: string, ctx: CommandContext): Promise<void> {
  if (which === "") return ctx.warn("/skills approve needs an id, or all. /skills pending lists them.");
  const { approvePending } = await import("../skills/manage/manage.ts");
  const answers = await approvePending(which, await ground(own, ctx));
  ctx.say(answers.length === 0 ? nothingOf(which) : approvedText(answers));
}

async function reject(own: AgentSkills, which: string, ctx: CommandContext): Promise<void> {
  if (which === "") return ctx.warn("/skills reject needs an id, or all. /skills pending lists them.");
  const { rejectPending } = await import("../skills/manage/manage.ts");
  const writes = await rejectPending(which, own);
  ctx.say(writes.length === 0 ? nothingOf(which) : `Discarded: ${writes.map(({ id }) => id).join(", ")}`);
}

const bundles: CommandDefinition = {
  name: "bundles",
  description: "list skill bundles",
  category: "Tools & Skills",
  async run(_args, ctx) {
    const own = ctx.conversation.skills;
    if (!own) return ctx.warn("Skills are disabled in this conversation.");
    const { loadBundles } = await import("../skills/bundles.ts");
    const found = await loadBundles(own.context);
    for (const warning of found.warnings) ctx.warn(warning);
    if (found.bundles.size === 0)
      return ctx.say("No bundles yet. Create one: hermes bundles create NAME --skill A --skill B");
    const lines = [...found.bundles.values()].map(
      ({ slug, skills: members, description }) =>
        `  /${slug}  ${members.join(", ")}${description === "" ? "" : `  (${description})`}`,
    );
    ctx.say(lines.join("\n"));
  },
};

/** The skills at the last reload, by conversation. */
const seen = new WeakMap<AgentSkills, ReadonlySet<string>>();

const reloadSkills: CommandDefinition = {
  name: "reload-skills",
  aliases: ["reload_skills"],
  description: "rescan skills for additions and removals",
  category: "Tools & Skills",
  async run(_args, ctx) {
    const own = ctx.conversation.skills;
    if (!own) return ctx.warn("Skills are disabled in this conversation.");
    const before = seen.get(own) ?? (await own.namesAtStart(ctx.platform));
    const { clearSkillsPromptCache } = await import("../skills/visible.ts");
    const { offeredSkills } = await import("../skills/open-skill.ts");
    await clearSkillsPromptCache(own.context, { snapshot: true });
    const now = new Set((await offeredSkills(own.context, ctx.platform)).map(({ name }) => name));
    seen.set(own, now);
    const added = [...now].filter((name) => !before.has(name));
    const removed = [...before].filter((name) => !now.has(name));
    const changes = [
      ...(added.length > 0 ? [`Added: ${added.join(", ")}`] : []),
      ...(removed.length > 0 ? [`Removed: ${removed.join(", ")}`] : []),
    ];
    const what = changes.length > 0 ? changes.join("\n") : "No skills added or removed.";
    ctx.say(`${what}\n${plural(now.size, "skill")}. The system prompt of this conversation is not changed.`);
  },
};

export const LIBRARY_COMMANDS: readonly CommandDefinition[] = [skills, bundles, reloadSkills];
