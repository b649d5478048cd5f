// Which files a .gitignore leaves out.
import { dirname, join, relative, sep } from "node:path";
import picomatch from "picomatch";
import { type FileAccess, localFiles } from "./files/access.ts";

interface Rule {
  readonly negated: boolean;
  readonly directoriesOnly: boolean;
  /** Matches the path below the file's directory, or the bare name when the pattern has no slash. */
  readonly matches: (path: string, name: string) => boolean;
}

interface RuleFile {
  readonly directory: string;
  readonly rules: readonly Rule[];
}

/** Rules in force at one directory, outermost first: the last rule that matches decides. */
export interface IgnoreRules {
  ignores(path: string, isDirectory: boolean): boolean;
  /** The rules below, with the files of this directory added. A repository of its own starts afresh. */
  enter(directory: string, names: readonly string[]): Promise<IgnoreRules>;
}

export const noRules: IgnoreRules = rulesOf([], localFiles);

function rulesOf(files: readonly RuleFile[], access: Pick<FileAccess, "read">): IgnoreRules {
  return {
    ignores(path, isDirectory) {
      let ignored = false;
      for (const { directory, rules } of files) {
        const below = relative(directory, path).split(sep).join("/");
        const name = below.slice(below.lastIndexOf("/") + 1);
        for (const rule of rules)
          if ((isDirectory || !rule.directoriesOnly) && rule.matches(below, name)) ignored = !rule.negated;
      }
      return ignored;
    },
    async enter(directory, names) {
      const inherited = names.includes(".git") ? [] : files;
      const own: RuleFile[] = [];
      for (const name of [".gitignore", ".ignore"])
        if (names.includes(name))
          own.push({ directory, rules: parseRules(await readRules(join(directory, name), access)) });
      return own.length === 0 && inherited === files ? this : rulesOf([...inherited, ...own], access);
    },
  };
}

/** The rules that directories above a root impose on it, up to the root of its repository. */
export async function rulesAbove(root: string, access: FileAccess = localFiles): Promise<IgnoreRules> {
  const upwards = [root];
  for (let at = root; dirname(at) !== at; at = dirname(at)) upwards.push(dirname(at));
  const names = await access.entries(upwards, new AbortController().signal);
  const namesIn = (directory: string) => (names.get(directory) ?? []).map(({ name }) => name);
  const repository = upwards.findIndex((directory) => namesIn(directory).includes(".git"));
  let rules = rulesOf([], access);
  for (const parent of upwards.slice(1, repository === -1 ? undefined : repository + 1).reverse())
    rules = await rules.enter(parent, namesIn(parent));
  return rules;
}

function parseRules(text: string): Rule[] {
  return text.split(/\r?\n/).flatMap((line) => {
    let pattern = line.replace(/(?<!\\)\s+$/, "");
    if (pattern === "" || pattern.startsWith("#")) return [];
    const negated = pattern.startsWith("!");
    if (negated) pattern = pattern.slice(1);
    const directoriesOnly = pattern.endsWith("/");
    if (directoriesOnly) pattern = pattern.slice(0, -1);
    const anchored = pattern.includes("/");
    const isMatch = picomatch(pattern.replace(/^\//, ""), {
      dot: true,
      nonegate: true,
      noextglob: true,
      nobrace: true,
    });
    return [{ negated, directoriesOnly, matches: (path: string, name: string) => isMatch(anchored ? path : name) }];
  });
}

async function readRules(path: string, access: Pick<FileAccess, "read">): Promise<string> {
  // Unreadable, or gone meanwhile: then it imposes nothing.
  return access.read(path).then(
    (bytes) => bytes.toString("utf8"),
    () => "",
  );
}
