import assert from "node:assert/strict";
import { test } from "node:test";
import { pathsOfCall } from "./hints.ts";

const bearings = { cwd: "/w", userHome: "/home/me" };

const calls: readonly (readonly [tool: string, args: Record<string, unknown>, paths: readonly string[]])[] = [
  ["read_file", { path: "a/b.ts" }, ["/w/a/b.ts"]],
  ["read_file", { path: "plain" }, ["/w/plain"]],
  ["other", { workdir: "c", file_path: "b", path: "a" }, ["/w/a", "/w/b", "/w/c"]],
  ["other", { path: 5, file_path: "", workdir: null }, []],
  ["read_file", { path: "~/x" }, ["/home/me/x"]],
  ["read_file", { path: "~nobody/x" }, []],
  ["web_extract", { path: "https://x.test/a" }, []],
  ["search_files", { path: "/abs/../abs/x" }, ["/abs/x"]],
  [
    "patch",
    {
      mode: "patch",
      patch:
        "*** Begin Patch\n*** Update File: a/x.ts\n@@\n*** Add File: b/y.ts\n+1\n*** Delete File: c/z\n*** Move File: d/1 -> e/2\n *** Update File: f/3\n*** Move to: g/4\n*** End Patch",
    },
    ["/w/a/x.ts", "/w/b/y.ts", "/w/c/z", "/w/d/1", "/w/e/2", "/w/f/3", "/w/g/4"],
  ],
  ["write_file", { patch: "*** Add File: b/y.ts" }, []],
];
for (const [tool, args, paths] of calls) {
  test(`${tool} ${JSON.stringify(args).slice(0, 70)}`, () =>
    assert.deepEqual(pathsOfCall(tool, args, bearings), paths));
}

const commands: readonly (readonly [command: string, paths: readonly string[]])[] = [
  ["ls src/a", ["/w/src/a"]],
  ["ls src", []],
  ["cat a.txt b/c", ["/w/a.txt", "/w/b/c"]],
  ["cat 'my dir/x y' \"q/z\" e\\ f/g", ["/w/my dir/x y", "/w/q/z", "/w/e f/g"]],
  ["cat a/x>b/y&&cat c/z;cat d/w|grep e/v", ["/w/a/x", "/w/b/y", "/w/c/z", "/w/d/w", "/w/e/v"]],
  ["cd sub && cat x.ts", ["/w/sub", "/w/sub/x.ts"]],
  ["cd sub; cd deeper && ls ./y", ["/w/sub", "/w/sub/deeper", "/w/sub/deeper/y"]],
  ["pushd sub", ["/w/sub"]],
  ["(cd sub && ls a/b); ls c/d", ["/w/sub", "/w/sub/a/b", "/w/c/d"]],
  ["cd && ls a/b", ["/home/me/a/b"]],
  ["git -C repo status", ["/w/repo"]],
  ["npm --prefix web run build", ["/w/web"]],
  ["npm --prefix=web run build", ["/w/web"]],
  ["tool --cwd app", ["/w/app"]],
  ["tool --config=conf/x.yml --verbose=yes -v -I./inc", ["/w/conf/x.yml"]],
  ["curl https://x.test/a/b", []],
  ["git clone git@github.com:a/b.git", []],
  [`cat ~/notes/x $HOME/y $\{HOME}/z`, ["/home/me/notes/x", "/home/me/y", "/home/me/z"]],
  ["cat ~root/x", []],
  ["cat 'a/b", ["/w/'a/b"]],
  ["if [ -f a/b ]; then cat c/d; fi", ["/w/a/b", "/w/c/d"]],
  ["echo $(cat in/side)", ["/w/in/side"]],
  ["cat <<EOF > out/file\nnot/this\nEOF", ["/w/out/file"]],
  ["ls my.app", ["/w/my.app"]],
  ["", []],
];
for (const [command, paths] of commands) {
  test(`terminal: ${command.split("\n")[0]}`, () => {
    assert.deepEqual(pathsOfCall("terminal", { command }, bearings), paths);
  });
}

test("a command's own directory is where its paths start", () => {
  assert.deepEqual(pathsOfCall("terminal", { command: "cat x/y", workdir: "pkg" }, bearings), ["/w/pkg", "/w/pkg/x/y"]);
});

test("a command line of thousands of files stays cheap", () => {
  const command = `cat ${Array.from({ length: 5000 }, (_, n) => `d${n}/x`).join(" ")}`;
  assert.equal(pathsOfCall("terminal", { command }, bearings).length, 64);
});
