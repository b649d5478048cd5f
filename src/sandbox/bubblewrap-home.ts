// What a sandboxed command sees of the user's home directory. Programs keep their keys in dot files, each under a name of its own, so no list
// of those is ever complete: of the dot files only what toolchains need is shown, and every other one is not there.
import { readdir, readlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ownKindNow, realPathNow } from "../home/looks.ts";
import { isWithin } from "../kit/files.ts";
import type { Mount } from "./protected-files.ts";

const TOOLCHAINS = (
  ".nvm .fnm .volta .asdf .mise .nodenv .pyenv .rbenv .rvm .goenv .jenv .sdkman .jdks .rustup .cargo/bin .cargo/env .cargo/registry " +
  ".deno/bin .bun/bin .bun/install .conda .juliaup .julia .ghcup .cabal/bin .stack/programs .opam .elan .dotnet .pub-cache .nix-profile .nix-defexpr " +
  ".linuxbrew .krew .foundry/bin .wasmer .wasmtime .jbang .nimble .npm-global .npm-packages .yarn/bin .pnpm .gem/ruby .rye .pixi .swiftly " +
  ".gradle/wrapper .m2/wrapper .m2/repository .composer/vendor .local/bin .local/lib .local/opt .local/state/nix .local/share/mise .local/share/fnm " +
  ".local/share/pnpm .local/share/uv .local/share/pipx .local/share/rtx .local/share/virtualenvs .local/share/gem .local/share/fonts " +
  ".local/share/swiftly .cache/ms-playwright .cache/puppeteer .cache/selenium .cache/pre-commit .cache/bazelisk .fonts .terminfo"
).split(" ");
/** What shells read when they start, and settings without keys. */
const SETTINGS = (
  ".bashrc .bash_profile .bash_login .bash_aliases .profile .zshenv .zprofile .zshrc .config/fish/config.fish " +
  ".gitconfig .gitignore .gitignore_global .gitattributes .config/git/config .config/git/ignore .config/git/attributes .editorconfig " +
  ".tool-versions .config/mise/config.toml .config/fontconfig .config/user-dirs.dirs .inputrc .condarc .config/nix/nix.conf"
).split(" ");
const KEY_FILE = /^snap$|^id_(?:rsa|dsa|ecdsa|ed25519)|\.(?:kdbx?|pem|key|p12|pfx|ppk|jks|ovpn|gpg|asc|age)$/i;
/** So many mounts cost nothing that anybody feels; of fuller homes the folders are shown. */
const MANY = 300;

interface HomeFacts {
  readonly userHome: string;
  /** PATH of the commands. */
  readonly path: string;
  /** What else has to be seen, such as the program that runs scripts. */
  readonly needed: readonly string[];
}

interface HomeView {
  /** Where the home really is; null where there is none to hide. */
  readonly home: string | null;
  readonly mounts: readonly Mount[];
  /** Whether nothing of a path is shown. */
  hides(path: string): boolean;
  /** Links of the home, made again inside: they lead to what the view shows, or nowhere. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
}

export async function viewOfHome({ userHome, path, needed }: HomeFacts): Promise<HomeView> {
  const home = realPathNow(userHome);
  if (home === null || home === "/" || dirname(home) === home)
    return { home: null, mounts: [], links: [], hides: () => false };
  const names = await readdir(home).catch(() => []);
  const ordinary = await Promise.all(
    names.filter((name) => !name.startsWith(".") && !KEY_FILE.test(name)).map((name) => look(join(home, name))),
  );
  const seen = ordinary.filter((found) => found !== null);
  const shown = seen.length <= MANY ? seen : seen.filter(({ isFile }) => !isFile);
  const wanted = [
    ...[...TOOLCHAINS, ...SETTINGS].map((name) => join(home, name)),
    ...path.split(":").flatMap((folder) => toolchainOf(resolve(folder), home)),
    ...needed,
  ];
  const dots = await Promise.all(wanted.filter((one) => isWithin(one, home) && one !== home).map(look));
  const found = [...shown, ...dots.filter((one) => one !== null)];
  return {
    home,
    mounts: [
      { path: home, kind: "empty directory" },
      ...found.flatMap(({ path, target }): Mount[] => (target === null ? [{ path, kind: "read-only" }] : [])),
    ],
    hides: (path) =>
      isWithin(path, home) &&
      !found.some((one) => one.target === null && (isWithin(path, one.path) || isWithin(one.path, path))),
    links: found.flatMap(({ path, target }) => (target === null ? [] : [{ path, target }])),
  };
}

/** A folder of programs, and beside a `bin` what belongs to it: the version's own folder, never a dot folder as a whole. */
function toolchainOf(folder: string, home: string): string[] {
  const parent = dirname(folder);
  const isVersion =
    basename(folder) === "bin" && isWithin(parent, home) && !/^\.[^/]+$/.test(parent.slice(home.length + 1));
  return isVersion && parent !== home && basename(parent) !== ".local" ? [parent] : [folder];
}

async function look(path: string) {
  const kind = ownKindNow(path);
  if (kind === null) return null;
  if (kind === "link") {
    const target = await readlink(path).catch(() => null); // gone meanwhile
    return target === null ? null : { path, target, isFile: true };
  }
  // A link on the way leads where the view decides for itself.
  return realPathNow(path) === path ? { path, target: null, isFile: kind === "file" } : null;
}
