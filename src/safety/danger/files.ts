import type { Invocation } from "../analysis/invocation.ts";
import { hasLetter, hasLong, type Options } from "../analysis/options.ts";
import { optionsOf, pathOf, programRule, type Rule, type RuleGroup } from "../scene.ts";
import { isCredentialOrStartFile, isHermesFile, isProjectSetting, isSystemConfig } from "../sensitive-targets.ts";
import { namedOutputs } from "../written-targets.ts";

const COPIERS = ["cp", "mv", "install", "ln", "rsync", "scp"];

/** Where a copy goes: the last operand, or the value of `-t`; and what it would be called there if that is a directory. */
function destination(invocation: Invocation): { readonly path: string; readonly inside: readonly string[] } {
  const options = optionsOf(invocation, {
    short: invocation.program === "install" ? "tSmog" : invocation.program === "scp" ? "cDFiJloPSX" : "tS",
    long: ["target-directory", "suffix", "mode", "owner", "group", "exclude", "include", "rsh", "chmod"],
  });
  const named = options.values.find(({ name }) => name === "t" || name === "target-directory")?.value;
  const path = named ?? (options.operands.length > 1 ? (options.operands.at(-1) ?? "") : "");
  const sources = named === undefined ? options.operands.slice(0, -1) : options.operands;
  const names = sources.map((source) => source.replace(/\/+$/, "").replace(/.*\//, ""));
  return { path, inside: path === "" ? [] : names.map((name) => `${path}/${name}`) };
}

function copyRule(key: string, isTarget: (path: string) => boolean): Rule {
  return programRule(key, COPIERS, (invocation, scene) =>
    isTarget(pathOf(destination(invocation).path, invocation, scene)),
  );
}

/** A copy into a directory replaces the file of the same name there; and more than copies names the file it writes. */
function placeRule(key: string, isTarget: (path: string, program: string) => boolean): Rule {
  return {
    key,
    matches: (scene) =>
      scene.invocations.some((invocation) => {
        const { program } = invocation;
        const copied = COPIERS.includes(program) ? destination(invocation) : { path: "", inside: [] };
        return [copied.path, ...copied.inside, ...namedOutputs(invocation)]
          .filter((path) => path !== "")
          .some((path) => isTarget(pathOf(path, invocation, scene), program));
      }),
  };
}

type Editor = "short" | "long" | "script";

const sedOptions = (invocation: Invocation): Options =>
  optionsOf(invocation, { short: "efl", long: ["expression", "file", "line-length"] });

/** How the command edits in place, if it does. */
function editorOf(invocation: Invocation): Editor | null {
  if (invocation.program === "sed" || invocation.program === "gsed") {
    if (hasLong(sedOptions(invocation), "in-place", 2)) return "long";
    return hasLetter(sedOptions(invocation), "i") ? "short" : null;
  }
  if (!/^(?:perl|ruby)[0-9.]*$/.test(invocation.program)) return null;
  return hasLetter(optionsOf(invocation, { short: "eEIMmrCF" }), "i") ? "script" : null;
}

function editRule(key: string, editors: readonly Editor[], isTarget: (path: string) => boolean): Rule {
  return {
    key,
    matches: (scene) =>
      scene.invocations.some((invocation) => {
        const editor = editorOf(invocation);
        if (editor === null || !editors.includes(editor)) return false;
        return sedOptions(invocation).operands.some((operand) => isTarget(pathOf(operand, invocation, scene)));
      }),
  };
}

const CREDENTIAL_EDIT = "in-place edit of sensitive credential/SSH/shell-rc path";
const HERMES_EDIT = "in-place edit of Hermes config/env";

export const copiesAndEdits: RuleGroup = {
  reason: "replaces a file that holds settings or secrets",
  rules: [
    placeRule("copy/move file into system config path", isSystemConfig),
    copyRule("overwrite project env/config file", (path) => isProjectSetting(path) && !isHermesFile(path)),
    placeRule(
      "copy/move file into sensitive credential/SSH/shell-rc path",
      // Emptying a file of the agent's own has a rule of its own.
      (path, program) => isCredentialOrStartFile(path) || (program !== "truncate" && isHermesFile(path)),
    ),
    editRule(CREDENTIAL_EDIT, ["short"], isCredentialOrStartFile),
    editRule(`${CREDENTIAL_EDIT} (long flag)`, ["long"], isCredentialOrStartFile),
    editRule(`${CREDENTIAL_EDIT} (perl/ruby)`, ["script"], isCredentialOrStartFile),
    editRule("in-place edit of system config", ["short", "script"], isSystemConfig),
    editRule("in-place edit of system config (long flag)", ["long"], isSystemConfig),
    editRule(HERMES_EDIT, ["short"], isHermesFile),
    editRule(`${HERMES_EDIT} (long flag)`, ["long"], isHermesFile),
    editRule(`${HERMES_EDIT} (perl/ruby)`, ["script"], isHermesFile),
  ],
};
