// `hermes` and `hermes chat`: one answer for a script, one turn for a person, or the interactive screen.

import { resolve } from "node:path";
import { said } from "../../home/language/words.ts";
import type { Worker } from "../../kanban/own-card.ts";
import { type CliContext, ExitError, readAll } from "../cli-context.ts";
import type { ChatRequest } from "../typed-input.ts";
import type { ChatOptions } from "./argv.ts";

/** Resolves to the exit code. */
export async function runChat(options: ChatOptions, ctx: CliContext, openTerminal: OpenTerminal): Promise<number> {
  // The folder of a card was chosen for it.
  if (options.worktree || (ctx.home.config().worktree && !worksOnCard(ctx)))
    return inWorktree(options, ctx, openTerminal);
  return talk(options, ctx, openTerminal);
}

type OpenTerminal = (request: ChatRequest) => Promise<number>;
type Overlay = ChatRequest["overlay"];

/** A checkout runs what the repository's git is told to run, so the folder has to be a trusted one. */
async function inWorktree(options: ChatOptions, ctx: CliContext, openTerminal: OpenTerminal): Promise<number> {
  const { home, io } = ctx;
  if (options.oneshot === undefined) await askForTrust(ctx);
  const { standing, folder } = home.folders.standing(ctx.cwd);
  if (standing !== "trusted")
    throw new ExitError(1, `-w needs a folder you trust: hermes trust add ${home.display(folder)}`);
  const { openWorktree } = await import("./worktree.ts");
  const newName = () => ctx.clock.random().toString(16).slice(2, 10).padEnd(8, "0");
  const tree = await openWorktree(ctx.cwd, { environment: home.environment(), newName });
  for (const warning of tree.warnings) io.err(`⚠ ${warning}\n`);
  const about = `You work in a git worktree that was made for this conversation: ${tree.path}, branch ${tree.branch}. Stay inside it. Commit what should be kept.`;
  const overlay = () => [home.config().agent.system_prompt, about].filter(Boolean).join("\n\n");
  // Paths on the command line mean the folder it was typed in.
  const here = (path: string) => resolve(ctx.cwd, path);
  const placed = {
    ...options,
    restoreCwd: false,
    ...(options.image ? { image: options.image.map(here) } : {}),
    ...(options.usageFile === undefined ? {} : { usageFile: here(options.usageFile) }),
  };
  process.chdir(tree.cwd);
  try {
    return await talk(placed, { ...ctx, cwd: tree.cwd }, openTerminal, overlay);
  } finally {
    process.chdir(ctx.cwd);
    const kept = await tree.leave();
    if (kept !== null)
      io.err(`The worktree is kept, because ${kept}: ${home.display(tree.path)} (branch ${tree.branch})\n`);
  }
}

async function talk(
  options: ChatOptions,
  ctx: CliContext,
  openTerminal: OpenTerminal,
  overlay?: Overlay,
): Promise<number> {
  if (options.verbose) ctx.home.log.mirror(ctx.io.err);
  if (options.oneshot !== undefined) {
    refuseBrokenConfig(ctx);
    const prompt = options.oneshot === "-" ? await readAll(ctx.io.stdin) : options.oneshot;
    return (await import("./one-shot.ts")).runOneShot(prompt, requestOf(options, ctx, false, overlay), options, ctx);
  }
  const query = await queryOf(options, ctx);
  if (query !== null) {
    refuseBrokenConfig(ctx);
    for (const warning of ctx.home.warnings) ctx.io.err(`⚠ ${warning}\n`);
    const asked = requestOf(options, ctx, false, overlay);
    const worker = await workerHere(ctx);
    const request: ChatRequest = worker === null ? asked : unattended(asked, worker.workspace);
    if (request.interactive) await askForTrust(ctx);
    return (await import("./query.ts")).runQuery(query, request, options, ctx, worker);
  }
  refuseStrayOptions(options);
  const pictures = options.image && (await (await import("./one-shot.ts")).readPictures(options.image, ctx.cwd));
  if (!ctx.io.stdoutIsTerminal) {
    throw new ExitError(
      1,
      'the interactive screen needs a terminal. For scripts use "hermes -z PROMPT" or "hermes chat -q TEXT".',
    );
  }
  await refuseUnknownSession(options, ctx);
  await askForTrust(ctx);
  // The screen owns the terminal; other output would corrupt it.
  ctx.home.log.mirror(null);
  const open = () => openTerminal({ ...requestOf(options, ctx, true, overlay), pictures });
  return open().catch(async (error: unknown) => {
    if (!(await offerSetup(error, ctx))) throw error;
    return open();
  });
}

/** A provider that is configured and cannot be used: whoever sits there may set it up now. True = it was. */
async function offerSetup(error: unknown, ctx: CliContext): Promise<boolean> {
  const { ProviderError } = await import("../../llm/providers/settings.ts");
  if (!(error instanceof ProviderError) || !ctx.io.stdinIsTerminal) return false;
  ctx.io.err(`${error.message}\n`);
  const answer = await ctx.io.question("Set up a model now? [Y/n] ");
  if (answer === null || !/^(?:y(?:es)?)?$/i.test(answer.trim())) throw new ExitError(1);
  await (await import("./setup.ts")).setUp(ctx, "model", {});
  return true;
}

/** Before the screen is drawn or a question is read: a mistyped name is all there is to say then. */
async function refuseUnknownSession(options: ChatOptions, ctx: CliContext): Promise<void> {
  const name = resumeOf(options)?.name;
  if (!name) return;
  const { requireSession } = await import("../../agent/resume.ts");
  await requireSession(name, await ctx.conversationStore());
}

/** Once for each folder. Silence means look only; the end of the input means leave. */
async function askForTrust({ home, io, cwd, clock }: CliContext): Promise<void> {
  const { folder, standing } = home.folders.standing(cwd);
  if (standing !== "unknown" || home.unwritable !== null || !io.stdinIsTerminal) return;
  const { wrapColumns } = await import("../terminal-text.ts");
  const text =
    `\nThis folder is new to Hermes: ${home.display(folder)}\n` +
    "  t  trust it: plugins, servers and programs of this folder may load and run\n" +
    "  l  look only: nothing in this folder loads or runs on its own\n" +
    "  q  quit\n";
  io.err(wrapColumns(said(text), io.columns).join("\n"));
  let answer: string | undefined;
  while (answer === undefined) {
    const typed = await io.question("Trust this folder? [t/L/q] ");
    if (typed === null) {
      io.err("\n");
      throw new ExitError(130);
    }
    answer = /^(?:(t)(?:rust)?|(l)(?:ook(?: only)?)?|(q)(?:uit)?)$/i.exec(typed.trim() || "l")?.[0]?.[0]?.toLowerCase();
  }
  if (answer === "q") throw new ExitError(0);
  const lookOnly = answer === "l";
  await home.folders.decide(folder, { by: "start", lookOnly, at: new Date(clock.now()) });
  if (lookOnly) io.err(`Look only. To change that: hermes trust add ${home.display(folder)}\n`);
}

/** Options that the screen would ignore. */
function refuseStrayOptions({ json, quiet, usageFile, learn }: ChatOptions): void {
  const given = { "--json": json, "--quiet": quiet, "--usage-file": usageFile, "--learn": learn };
  const [stray] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
  if (stray) throw new ExitError(2, `${stray} needs a prompt: add -z PROMPT or -q TEXT.`);
}

/** An unattended run must not fall back to default settings. */
function refuseBrokenConfig({ home }: CliContext): void {
  const problem = home.configProblem;
  if (!problem) return;
  throw new ExitError(
    1,
    `${home.display(home.paths.configFile)} is broken at line ${problem.line}, column ${problem.column}: ${problem.message}\nFix it with "hermes config edit". Nothing was sent.`,
  );
}

/** The text of `-q`, or all of stdin when that is not a terminal; null = the interactive screen is wanted. */
async function queryOf(options: ChatOptions, ctx: CliContext): Promise<string | null> {
  const fromStdin = options.query === "-" || (options.query === undefined && !ctx.io.stdinIsTerminal);
  if (!fromStdin) {
    // A query may be a picture alone.
    if (options.query?.trim() === "" && !options.image?.length) throw new ExitError(1, "the prompt is empty.");
    return options.query ?? null;
  }
  await refuseUnknownSession(options, ctx);
  const text = await readAll(ctx.io.stdin);
  if (text.trim() === "") throw new ExitError(1, "stdin is empty; no prompt to send.");
  return text;
}

function requestOf(options: ChatOptions, ctx: CliContext, screen: boolean, overlay?: Overlay): ChatRequest {
  const asks = screen || (ctx.io.stdinIsTerminal && ctx.io.stderrIsTerminal && options.oneshot === undefined);
  return {
    home: ctx.home,
    clock: ctx.clock,
    store: ctx.conversationStore,
    cwd: ctx.cwd,
    platform: "cli",
    source: options.source ?? ctx.home.env("HERMES_SESSION_SOURCE") ?? "cli",
    interactive: asks && !options.quiet && !options.json,
    connectWith: screen ? "/setup" : undefined,
    model: options.model ?? ctx.home.override("HERMES_INFERENCE_MODEL"),
    provider: options.provider ?? ctx.home.override("HERMES_INFERENCE_PROVIDER"),
    toolsets: options.toolsets?.split(",").map((name) => name.trim()),
    skills: options.skills,
    resume: resumeOf(options),
    restoreCwd: options.restoreCwd,
    plain: options.plain === true || ctx.home.config().display.plain || ctx.home.env("TERM") === "dumb",
    yolo: options.yolo === true || isTruthy(ctx.home.override("HERMES_YOLO_MODE")),
    acceptHooks: options.acceptHooks === true,
    maxTurns: options.maxTurns,
    reasoning: options.reasoning,
    checkpoints: options.checkpoints,
    passSessionId: options.passSessionId === true,
    learn: screen || options.learn === true,
    titles: screen,
    ignoreRules:
      options.ignoreRules === true || options.safeMode === true || isTruthy(ctx.home.override("HERMES_IGNORE_RULES")),
    verbose: options.verbose === true,
    color: ctx.io.color,
    ...(overlay ? { overlay } : {}),
  };
}

const worksOnCard = ({ home }: CliContext) => Boolean(home.env("HERMES_KANBAN_TASK")?.trim());

async function workerHere(ctx: CliContext): Promise<Worker | null> {
  if (!worksOnCard(ctx)) return null;
  return (await import("../../kanban/own-card.ts")).workerOf((name) => ctx.home.env(name));
}

/** The dispatcher of a board began it, and nobody sits there: nothing is asked. */
const unattended = (request: ChatRequest, workspace: string | null): ChatRequest => ({
  ...request,
  ...{ interactive: false, origin: "kanban" },
  ...(workspace === null ? {} : { cwd: workspace, cwdIsChosen: true }),
});

function resumeOf(options: ChatOptions): ChatRequest["resume"] {
  if (options.resume !== undefined) return { name: options.resume };
  if (options.continue === undefined) return undefined;
  return { name: options.continue === true ? null : options.continue };
}

const isTruthy = (value: string | undefined) => ["1", "true", "yes", "on"].includes((value ?? "").toLowerCase());
