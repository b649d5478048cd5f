import assert from "node:assert/strict";
import { test } from "node:test";
import { foregroundGuidance } from "./command-kinds.ts";

const refused = [
  "npm run dev",
  "npm start",
  "pnpm serve",
  "yarn dev",
  "bun run watch",
  "npm --prefix web run dev",
  "cd web && npm run dev",
  "PORT=1 npm run dev",
  "docker compose up",
  "docker-compose up",
  "docker compose -f x.yml up --build",
  "next dev",
  "npx next dev",
  "vite",
  "npx vite --port 3000",
  "nodemon app.js",
  "uvicorn app:app",
  "python -m uvicorn app:app",
  "gunicorn app",
  "python3 -m http.server 8000",
  "sudo python -m http.server",
  "nohup ./run.sh",
  "nohup ./run.sh > log 2>&1 &",
  "setsid ./run.sh",
  "sleep 5; disown",
  "x & y",
  "sleep 100 &",
  "(sleep 100 &)",
  "bash -c 'npm run dev'",
];

const allowed = [
  "echo 'a & b'",
  'git commit -m "npm run dev"',
  "git commit -m 'fix & polish'",
  "cat nohup.out",
  "npm run build",
  "npm test",
  "ls 2>&1",
  "ls &> out.txt",
  "make && make test",
  "ls |& cat",
  "docker compose up -d",
  "vite build",
  "vite --version",
  "uvicorn --help",
  "npm run dev --help",
  "timeout 10 npm run dev",
  "grep -r uvicorn .",
  "echo `npm run dev`",
  "man nohup",
  "curl 'http://x/?a=1&b=2'",
];

test("commands that never end or detach are refused in the foreground with a way out", () => {
  for (const command of refused) assert.match(foregroundGuidance(command) ?? "null", /background=true/, command);
});

test("commands that only look like it are let through", () => {
  for (const command of allowed) assert.equal(foregroundGuidance(command), null, command);
});
