// Settings of git as text: which of them name a program or a file that git reads or runs, and the same settings without those.

export interface GitSetting {
  /** `section.key` or `section.sub.key`; section and key in lower case. */
  readonly name: string;
  readonly section: string;
  readonly sub: string | null;
  readonly key: string;
  /** Null: a key without a value, which means true. */
  readonly value: string | null;
}

interface ReadSettings {
  readonly settings: readonly GitSetting[];
  /** Every line is one that git itself would write: nobody else can read it another way. */
  readonly plain: boolean;
}

/** Lines that cannot be understood are left out, and the text is not plain then. */
export function readSettings(text: string): ReadSettings {
  const settings: GitSetting[] = [];
  let plain = true;
  let section: { name: string; sub: string | null } | null = null;
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    let rest = lines[at] ?? "";
    if (/^\s*(?:[#;][\t\x20-\x7e\u00a0-\uffff]*)?$/.test(rest)) continue;
    const header = /^\s*\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]/.exec(rest);
    if (header) {
      section = sectionOf(header[1] ?? "", header[2]);
      if (header[1]?.includes(".")) plain = false;
      rest = rest.slice(header[0].length);
      if (/^\s*$/.test(rest)) continue;
      plain = false;
    }
    const found = /^\s*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?$/s.exec(rest);
    if (!found || !section) {
      plain = false;
      continue;
    }
    let raw = found[2];
    if (raw !== undefined && /[\\"#;\x00-\x08\x0a-\x1f\x7f]/.test(raw)) plain = false;
    while (raw !== undefined && /(?:^|[^\\])(?:\\\\)*\\$/.test(raw) && at + 1 < lines.length)
      raw = raw.slice(0, -1) + lines[++at];
    const key = (found[1] ?? "").toLowerCase();
    const { name, sub } = section;
    settings.push({
      name: `${name}.${sub === null ? "" : `${sub}.`}${key}`,
      ...{ section: name, sub, key, value: raw === undefined ? null : unquoted(raw) },
    });
  }
  return { settings, plain };
}

function sectionOf(header: string, quoted: string | undefined) {
  const lower = header.toLowerCase();
  if (quoted !== undefined) return { name: lower, sub: quoted.replaceAll(/\\(.)/g, "$1") };
  const dot = lower.indexOf(".");
  return dot < 0 ? { name: lower, sub: null } : { name: lower.slice(0, dot), sub: lower.slice(dot + 1) };
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b" };

function unquoted(raw: string): string {
  let value = "";
  let quoted = false;
  // Blanks at the end count only when something follows them or they are quoted.
  let kept = 0;
  const text = raw.trimStart();
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '"') {
      quoted = !quoted;
      kept = value.length;
    } else if (char === "\\") {
      const next = text.charAt(++at);
      value += ESCAPES[next] ?? next;
      kept = value.length;
    } else if (!quoted && (char === "#" || char === ";")) break;
    else {
      value += char;
      if (quoted || !/\s/.test(char)) kept = value.length;
    }
  }
  return value.slice(0, kept);
}

// What may stay in a repository that was made where we do not trust anybody: names of remotes and branches, formats, and switches.

const BY_SECTION: Readonly<Record<string, RegExp>> = {
  core: /^(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|worktree|autocrlf|eol|safecrlf|quotepath|sparsecheckout|sparsecheckoutcone|abbrev|compression|preloadindex|untrackedcache|commitgraph|multipackindex|longpaths|protecthfs|protectntfs|sharedrepository|trustctime|checkstat|bigfilethreshold)$/,
  extensions:
    /^(?:objectformat|compatobjectformat|refstorage|worktreeconfig|partialclone|preciousobjects|relativeworktrees|noop)$/,
  remote: /^(?:url|pushurl|fetch|push|mirror|tagopt|prune|prunetags|promisor|partialclonefilter|gh-resolved)$/,
  branch:
    /^(?:remote|merge|rebase|pushremote|description|vscode-merge-base|gh-merge-base|autosetuprebase|autosetupmerge)$/,
  submodule: /^(?:url|active|branch|fetchrecursesubmodules|ignore|path|recurse|fetchjobs)$/,
  user: /^(?:name|email|useconfigonly)$/,
  author: /^(?:name|email)$/,
  committer: /^(?:name|email)$/,
  init: /^defaultbranch$/,
  pull: /^(?:rebase|ff)$/,
  push: /^(?:default|autosetupremote|followtags)$/,
  fetch: /^(?:prune|prunetags|parallel|writecommitgraph)$/,
  merge: /^(?:ff|conflictstyle|renames|log|stat)$/,
  rebase: /^(?:autosquash|autostash|updaterefs|stat)$/,
  rerere: /^(?:enabled|autoupdate)$/,
  diff: /^(?:algorithm|renames|renamelimit|colormoved|mnemonicprefix|noprefix|submodule)$/,
  gc: /^(?:auto|autodetach|autopacklimit|pruneexpire|reflogexpire|reflogexpireunreachable)$/,
  index: /^(?:version|threads|sparse)$/,
  feature: /^(?:manyfiles|experimental)$/,
  http: /^(?:postbuffer|version)$/,
  advice: /^\w+$/,
  color: /^\w+$/,
  status: /^\w+$/,
  lfs: /^(?:repositoryformatversion|access|locksverify)$/,
};

/** Programs of the machine that people set up in this way; each value is exactly what their own set-up writes. */
const USUAL: ReadonlySet<string> = new Set([
  "filter.lfs.clean=git-lfs clean -- %f",
  "filter.lfs.smudge=git-lfs smudge -- %f",
  "filter.lfs.process=git-lfs filter-process",
  "filter.lfs.required=true",
  "core.fsmonitor=false",
  "core.hookspath=/dev/null",
  "submodule.recurse=true",
]);

/** Whether a setting makes git run nothing and read no other settings, whatever its value. */
function isHarmless({ name, section, sub, key, value }: GitSetting): boolean {
  if (USUAL.has(`${name}=${value}`)) return true;
  if (section === "submodule" && key === "update") return /^(?:checkout|rebase|merge|none)$/.test(value ?? "");
  // `ext::` runs what follows it.
  if (section === "remote" && /^\s*\w+::/.test(value ?? "")) return false;
  if (/[\0\n]/.test(`${sub ?? ""}${value ?? ""}`)) return false;
  return BY_SECTION[section]?.test(key) === true;
}

/** The text without what git would run; null when nothing has to go. */
export function reduceSettings(text: string): { readonly text: string; readonly dropped: readonly string[] } | null {
  const { settings, plain } = readSettings(text);
  const dropped = settings.filter((setting) => !isHarmless(setting)).map(({ name }) => name);
  if (plain && dropped.length === 0) return null;
  const kept = settings.filter(isHarmless).map(({ section, sub, key, value }) => {
    const header = sub === null ? `[${section}]` : `[${section} "${sub.replaceAll(/["\\]/g, "\\$&")}"]`;
    return `${header}\n\t${key}${value === null ? "" : ` = "${value.replaceAll(/["\\]/g, "\\$&").replaceAll("\t", "\\t")}"`}\n`;
  });
  return { text: kept.join(""), dropped: [...new Set(dropped)] };
}

/** Of settings that are believed: the files they name, as written there. */
export function namedFiles(settings: readonly GitSetting[]): {
  readonly hooks: readonly string[];
  readonly includes: readonly string[];
  /** Words of values that run: some of them are files. */
  readonly words: readonly string[];
} {
  const valuesOf = (wanted: (setting: GitSetting) => boolean) =>
    settings.filter(wanted).flatMap(({ value }) => (value ? [value] : []));
  const isInclude = ({ section, key }: GitSetting) => /^include(?:if)?$/.test(section) && key === "path";
  const isHooks = ({ name }: GitSetting) => name === "core.hookspath";
  return {
    hooks: valuesOf(isHooks),
    includes: valuesOf(isInclude),
    words: valuesOf((one) => !isHarmless(one) && !isInclude(one) && !isHooks(one))
      .flatMap((value) => value.split(/[\s"'`;|&()<>=$!]+/))
      .filter((word) => word !== "" && !word.startsWith("-")),
  };
}
