// `skill_view`: a skill's text, or one of its files.
import { open, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { sliceCodePoints } from "../kit/code-points.ts";
import { scanForThreats } from "../safety/threats/scan.ts";
import type { Skill } from "./catalogue.ts";
import { linkedFiles, safePath, skillFiles } from "./files.ts";
import { type OpenedSkill, openSkill, reason, skillContent } from "./open-skill.ts";
import type { InlineShell } from "./preprocess.ts";
import { hermesFields, listField, mapField, textField } from "./read-entry.ts";
import { prepareSkill, type Readiness, setupNote } from "./requirements.ts";
import type { SkillsContext } from "./roots.ts";
import { failure, type SkillResult, type SkillRun, unchanged, type ViewMemory } from "./run.ts";
import { bumpUsage } from "./usage.ts";
import type { SkillVariables } from "./variables.ts";

/** What `skill_view` may use beyond the home's files. */
export interface ViewPorts {
  readonly views: ViewMemory;
  readonly inlineShell?: InlineShell | undefined;
  /** Stores a secret the user typed; absent where none can be stored. */
  setEnv?(name: string, value: string): Promise<void>;
  /** Gets what an opened skill declares; absent: nothing is handed on. */
  readonly variables?: SkillVariables | undefined;
}

export async function viewSkill(
  request: { readonly name: string; readonly filePath?: string | undefined },
  context: SkillsContext,
  run: SkillRun,
  ports: ViewPorts,
): Promise<SkillResult> {
  const opening = { platform: run.platform, sessionId: run.sessionId, inlineShell: ports.inlineShell };
  const opened = await openSkill(request.name, context, opening);
  if (opened.type === "refused") return opened.result;
  const filePath = request.filePath?.trim();
  const counted = (result: SkillResult) => {
    if (result.success) bumpUsage(context, opened.skill.name, ["view", "use"]);
    return result;
  };
  if (filePath) return counted(await viewFile(opened.skill, filePath, run, ports.views));

  const { skill, parsed, text } = opened;
  warnAboutOrders(opened, context);
  const setup = await prepareSkill(parsed.fields, context, run, ports);
  const declared = setup.readiness.variables.map((variable) => variable.name);
  const environmentNote = await ports.variables?.open(skill, declared, context);
  const file = join(skill.dir, "SKILL.md");
  const facts = await stat(file, { bigint: true });
  const version = `${facts.mtimeNs}:${facts.size}`;
  const needsSetup = setup.readiness.missingVariables.length + setup.readiness.missingFiles.length > 0;
  ports.views.noteRead(run.taskId, file, version);
  if (!needsSetup && ports.views.isRepeat(run.sessionId, file, version))
    return counted(unchanged({ name: skill.name, path: skillPath(opened) }));
  const content = await skillContent({ skill, text }, context, opening);
  return counted({
    ...describe(opened),
    content,
    ...(await filesPart(skill.dir)),
    ...setupPart(setup.readiness, setup.skipped, run),
    environment_note: environmentNote ?? undefined,
    ...extras(opened),
  });
}

const skillPath = ({ skill }: OpenedSkill) => `${skill.path}/SKILL.md`;

function describe(opened: OpenedSkill) {
  const { skill, parsed } = opened;
  const own = hermesFields(parsed.fields);
  return {
    success: true,
    name: skill.name,
    description: skill.description,
    tags: listField(own.tags ?? parsed.fields.tags),
    related_skills: listField(own.related_skills ?? parsed.fields.related_skills),
    path: skillPath(opened),
    skill_dir: skill.dir,
  };
}

async function filesPart(dir: string) {
  const files = await linkedFiles(dir);
  const hint = "skill_view(name, file_path) loads one of the linked files, e.g.";
  const example = files ? Object.values(files)[0]?.[0] : undefined;
  return { linked_files: files, usage_hint: example === undefined ? null : `${hint} file_path='${example}'` };
}

function setupPart(readiness: Readiness, skipped: boolean, run: SkillRun) {
  const { variables, missingVariables, missingFiles } = readiness;
  const needed = missingVariables.length + missingFiles.length > 0;
  const help = missingVariables.flatMap((variable) => variable.help ?? []);
  const note = setupNote(readiness);
  return {
    required_environment_variables: variables,
    missing_required_environment_variables: missingVariables.map(({ name }) => name),
    missing_credential_files: missingFiles,
    setup_needed: needed,
    setup_skipped: skipped,
    readiness_status: needed ? "setup_needed" : "available",
    setup_help: help.join("\n") || undefined,
    setup_note: note ?? undefined,
    ...(needed &&
      run.chat !== undefined && {
        gateway_setup_hint:
          "Secrets are never typed into a chat: set them on the machine itself, in the home's .env file.",
      }),
  };
}

function extras({ parsed: { fields, problem }, shadows }: OpenedSkill) {
  const texts = ["version", "author", "license", "compatibility"].flatMap((key) => {
    const text = textField(fields[key]);
    return text === "" ? [] : [[key, text]];
  });
  const metadata = mapField(fields.metadata);
  return {
    ...Object.fromEntries(texts),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    shadows: shadows.length > 0 ? shadows : undefined,
    front_matter_problem: problem ?? undefined,
  };
}

function warnAboutOrders({ skill, text }: OpenedSkill, context: SkillsContext): void {
  const ids = scanForThreats(text, "all").map(({ id }) => id);
  if (ids.length > 0) context.log.warn(`skill ${skill.path} holds text that looks like an attack: ${ids.join(", ")}`);
}

// One file of a skill, text or not.

const LARGE_BYTES = 256 * 1024;
const SHOWN_CHARS = 100_000;

async function viewFile(skill: Skill, filePath: string, run: SkillRun, views: ViewMemory): Promise<SkillResult> {
  const safe = await safePath(skill.dir, filePath);
  if (safe.type === "refused") return failure("traversal", `${safe.reason}.`);
  const { path, absolute } = safe;
  const facts = await stat(absolute, { bigint: true }).catch(() => null);
  if (!facts?.isFile()) {
    const available_files = await skillFiles(skill.dir);
    return failure("file_not_found", `Skill '${skill.name}' has no file '${path}'.`, { available_files });
  }
  const version = `${facts.mtimeNs}:${facts.size}`;
  views.noteRead(run.taskId, absolute, version);
  const about = { name: skill.name, file: path };
  if (views.isRepeat(run.sessionId, absolute, version)) return unchanged(about);
  try {
    return { success: true, ...about, ...(await readContent(absolute, Number(facts.size))), file_type: extname(path) };
  } catch (error) {
    return failure("unreadable", `'${path}' of skill '${skill.name}' cannot be read: ${reason(error)}`);
  }
}

async function readContent(path: string, size: number): Promise<Readonly<Record<string, unknown>>> {
  // Four bytes are the most one code point takes.
  const bytes = await readStart(path, size > LARGE_BYTES ? SHOWN_CHARS * 4 : size);
  const text = decode(bytes, size > bytes.length);
  if (text === null) return { content: `[binary file, ${size} bytes]`, is_binary: true };
  if (size <= LARGE_BYTES) return { content: text };
  return {
    content: sliceCodePoints(text, 0, SHOWN_CHARS),
    truncated: true,
    message: `Only the first ${SHOWN_CHARS} characters of ${size} bytes. Read the rest with the file tool: ${path}`,
  };
}

async function readStart(path: string, length: number): Promise<Uint8Array> {
  const file = await open(path, "r");
  try {
    const buffer = Buffer.alloc(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await file.read(buffer, filled, length - filled, filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  } finally {
    await file.close();
  }
}

/** Null for what is not UTF-8 text. `cut`: the last character may be incomplete. */
function decode(bytes: Uint8Array, cut: boolean): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: cut });
  } catch {
    return null;
  }
}
