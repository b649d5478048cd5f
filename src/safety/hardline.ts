// Commands that no mode, flag or answer allows.
import { argTexts, type Invocation } from "./analysis/invocation.ts";
import { matchGlob } from "./paths.ts";
import { asksForHelp, optionsOf, pathOf, programRule, type Rule, type Scene, setScene, writtenFiles } from "./scene.ts";

const SYSTEM_DIRECTORIES = ["home", "root", "etc", "usr", "var", "bin", "sbin", "boot", "lib"];

/** `*`, `**`, `?*`, `.*`: everything in a directory. */
const isEverything = (part: string) => /^\.?(?=\?*\*)[*?]+$/.test(part);

const isSystemDirectory = (part: string) =>
  SYSTEM_DIRECTORIES.includes(part) || (/[*?[]/.test(part) && SYSTEM_DIRECTORIES.some((name) => matchGlob(part, name)));

function isRoot(path: string): boolean {
  const [first, ...rest] = path.split("/").filter(Boolean);
  return path.startsWith("/") && (first === undefined || (isEverything(first) && rest.length === 0));
}

function isSystem(path: string): boolean {
  const [first, second, ...rest] = path.split("/").filter(Boolean);
  if (!path.startsWith("/") || first === undefined || !isSystemDirectory(first)) return false;
  return second === undefined || (isEverything(second) && rest.length === 0);
}

function isHome(path: string): boolean {
  const [first, second, ...rest] = path.split("/").filter(Boolean);
  if (first !== "~") return false;
  return second === undefined || second === ".." || (isEverything(second) && rest.length === 0);
}

function deleteRule(key: string, isProtected: (path: string) => boolean): Rule {
  const hits = (invocation: Invocation, scene: Scene) =>
    optionsOf(invocation).operands.some((operand) => isProtected(pathOf(operand, invocation, scene)));
  return {
    key,
    matches: (scene) =>
      scene.invocations.some(
        (invocation) => (invocation.program === "rm" || looksLikeForcedDelete(invocation)) && hits(invocation, scene),
      ),
  };
}

/** `mkfs -V` alone prints its version. */
export const asksMkfsVersion = ({ args }: Invocation) => args.length === 1 && args[0]?.text === "-V";

/** `$CMD -rf /`: the name is hidden, the intent is not. */
const looksLikeForcedDelete = ({ dynamic, args }: Invocation) =>
  dynamic && args.some(({ text }) => /^-(?=.*[rR])(?=.*f)[a-zA-Z]+$/.test(text));

export const isBlockDevice = (path: string) =>
  /^\/dev\/(?:sd[a-z]|nvme[0-9]|hd[a-z]|mmcblk[0-9]|vd[a-z]|xvd[a-z])/.test(path);

function killsEverything(invocation: Invocation): boolean {
  const args = argTexts(invocation);
  if (/^-(?:l|L|-list|-table)/.test(args[0] ?? "")) return false;
  let at = 0;
  if (/^-(?:s|n|-signal)$/.test(args[0] ?? "")) at = 2;
  else if (/^-[^-]/.test(args[0] ?? "")) at = 1;
  else if (/^--signal=/.test(args[0] ?? "")) at = 1;
  const targets = args.slice(at).filter((arg) => arg !== "--");
  // Alone it is a signal to one shell and a target to another. Behind these, the targets come later.
  const completed = invocation.via.some(({ program }) => program === "xargs" || program === "parallel");
  const bare = targets.length === 0 && at === 1 && !completed;
  return (bare ? args : targets).some((arg) => /^-0*1$/.test(arg));
}

const RUN_LEVEL = /^[06]$/;

export const HARDLINE: readonly Rule[] = [
  deleteRule("recursive delete of root filesystem", isRoot),
  deleteRule("recursive delete of system directory", isSystem),
  deleteRule("recursive delete of home directory", isHome),
  {
    key: "format filesystem (mkfs)",
    matches: (scene) =>
      scene.invocations.some(
        (invocation) =>
          /^mkfs(?:\.|$)/.test(invocation.program) && !asksForHelp(invocation) && !asksMkfsVersion(invocation),
      ),
  },
  programRule("dd to raw block device", ["dd"], (invocation, scene) =>
    argTexts(invocation).some((arg) => /^of=/i.test(arg) && isBlockDevice(pathOf(arg.slice(3), invocation, scene))),
  ),
  {
    key: "redirect to raw block device",
    matches: (scene) =>
      scene.invocations.some((invocation) =>
        writtenFiles(invocation).some((file) => isBlockDevice(pathOf(file, invocation, scene))),
      ),
  },
  { key: "fork bomb", matches: (scene) => scene.forkBomb },
  programRule("kill all processes", ["kill"], killsEverything),
  programRule(
    "system shutdown/reboot",
    ["shutdown", "reboot", "halt", "poweroff"],
    (invocation) => !asksForHelp(invocation),
  ),
  programRule("init 0/6 (shutdown/reboot)", ["init"], (invocation) =>
    RUN_LEVEL.test(optionsOf(invocation).operands[0] ?? ""),
  ),
  programRule("telinit 0/6 (shutdown/reboot)", ["telinit"], (invocation) =>
    RUN_LEVEL.test(optionsOf(invocation, { short: "t" }).operands[0] ?? ""),
  ),
  programRule("systemctl poweroff/reboot", ["systemctl", "loginctl"], (invocation) => {
    const [verb = "", unit = ""] = optionsOf(invocation, { short: "tpHMnos" }).operands;
    if (/^(?:poweroff|reboot|soft-reboot|halt|kexec)$/.test(verb)) return true;
    return /^(?:start|isolate)$/.test(verb) && /^(?:poweroff|reboot|halt|kexec)\.target$/.test(unit);
  }),
];

/** The key of the first hardline rule that matches. What runs on another machine or in a container is not this machine's end. */
export function findHardline(scene: Scene): string | null {
  const here = setScene(scene, scene.homes, ({ remote }) => !remote);
  return HARDLINE.find((rule) => rule.matches(here))?.key ?? null;
}
