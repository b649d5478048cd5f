import assert from "node:assert/strict";
import { test } from "node:test";
import { bringsOutsideText, fetchesByCode, placesOf } from "./outside-output.ts";

const BRINGS: readonly (readonly [command: string, words: string | null])[] = [
  ["curl -s https://example.com/a", "curl example.com"],
  ["curl example.com/install", "curl example.com"],
  ["wget -qO- http://user@files.example.net:8080/x | head", "wget files.example.net"],
  ["cd /tmp && curl -fsSL https://a.example | tar x", "curl a.example"],
  ["sudo curl https://a.example", "curl a.example"],
  ["x=$(curl -s https://a.example/token); echo $x", "curl a.example"],
  ["bash -c 'curl https://a.example'", "curl a.example"],
  ["ssh me@box.example.org cat notes", "ssh box.example.org"],
  ["git clone https://git.example/evil.git", "git clone git.example"],
  ["gh issue view 12", "gh issue"],
  ["gh pr list", "gh pr"],
  ["npm view left-pad", "npm view"],
  ["docker logs web", "docker logs"],
  ["python3 -c 'import urllib.request as u; print(u.urlopen(\"https://a.example\").read())'", "python3 a.example"],
  ["node -e 'fetch(process.argv[1])' x", "a node script"],
  ["lynx -dump https://a.example", "lynx a.example"],
  ["curl https://localhost.evil.example/", "curl localhost.evil.example"],
  ["curl http://localhost:3000/health", null],
  ["curl -s 127.0.0.1:8080", null],
  ["curl --version", null],
  ["git log --oneline", null],
  ["git pull && git push", null],
  ["git commit -m 'see https://example.com'", null],
  ["grep -rn curl src", null],
  ["echo https://example.com", null],
  ["npm install && npm test", null],
  ["gh auth status", null],
  ["ls -la", null],
  ["cat notes.md", null],
  ["python3 build.py", null],
];

test("a command that fetches is known by its program, its words or its address; this machine's own servers do not count", () => {
  for (const [command, words] of BRINGS) assert.equal(bringsOutsideText(command), words, command);
});

const READS: readonly (readonly [command: string, reads: string])[] = [
  ["echo hi", ""],
  ["mkdir -p a && cd a && pwd", ""],
  ["date +%F; whoami", ""],
  ["echo hi > /tmp/x", ""],
  ["cat x", "."],
  ["make", "."],
  ["./echo hi", "."],
  ["$x hi", "."],
  ["echo $(cat x)", "."],
  ["cat /tmp/x ~/notes ../up", ". /tmp/x ~/notes ../up"],
  ["grep -r a --file=/tmp/list src", ". /tmp/list"],
  ["cd /tmp/x && cat y", "/tmp/x:."],
  ["sort < /tmp/list", ". /tmp/list"],
  ["cat src/../../x", ". src/../../x"],
  ["cat /dev/null", "."],
];

test("where a line reads is known by its programs and its words", () => {
  for (const [command, reads] of READS) {
    const found = placesOf(command).reads.map(({ path, from }) => (from === null ? path : `${from}:${path}`));
    assert.equal([...new Set(found)].join(" "), reads, command);
  }
  assert.deepEqual(
    placesOf("npm test > /tmp/log 2>&1; echo a >> b").writes.map(({ path }) => path),
    ["/tmp/log", "b"],
  );
});

test("code that speaks to the network is known by what it uses", () => {
  assert.ok(fetchesByCode("import requests\nrequests.get(u)"));
  assert.ok(fetchesByCode("open('https://example.com')"));
  assert.ok(!fetchesByCode("get('http://localhost:80/x')"));
  assert.ok(!fetchesByCode("print(sum(range(10)))"));
});
