// The room rule: imports point down this list only. Rooms of one line do not know each other, except where `neighbours` says so.
const floors = [
  ["main"],
  ["doors"],
  ["commands"],
  ["agent"],
  ["prompt", "memory", "skills", "tools", "mcp", "cron", "kanban", "plugins"],
  ["llm", "sandbox", "safety", "sessions"],
  ["home"],
  ["kit"],
];

// The message types are the lingua franca: what is stored is what the wires convert. An environment takes only commands that were
// decided about, so it must know what a decision is.
const neighbours = { sessions: "^src/llm/messages[.]ts$", sandbox: "^src/safety/decision[.]ts$" };

const at = (room) => (room === "main" ? "^src/main[.]ts$" : `^src/${room}/`);

const roomRules = floors.flatMap((rooms, floor) =>
  rooms.map((room) => {
    const below = floors.slice(floor + 1).flat();
    const allowed = [at(room), ...below.map(at), ...(neighbours[room] ? [neighbours[room]] : [])];
    return {
      name: `${room}-imports-downwards`,
      comment: `${room}/ may import itself${below.length > 0 ? ` and ${below.join(", ")}` : ""}`,
      severity: "error",
      from: { path: at(room), pathNot: "[.]test[.]ts$" },
      to: { path: "^src/", pathNot: allowed },
    };
  }),
);

export default {
  forbidden: [
    ...roomRules,
    {
      name: "doors-are-strangers",
      comment: "a door never imports another door; files directly in doors/ serve all of them",
      severity: "error",
      from: { path: "^src/doors/([^/]+)/", pathNot: "[.]test[.]ts$" },
      to: { path: "^src/doors/[^/]+/", pathNot: "^src/doors/$1/" },
    },
    {
      name: "no-circles",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "product-does-not-import-tests",
      severity: "error",
      from: { path: "^src/", pathNot: "[.]test[.]ts$" },
      to: { path: "^test/|[.]test[.]ts$" },
    },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "no-dev-packages-in-the-product",
      severity: "error",
      from: { path: "^src/", pathNot: "[.]test[.]ts$" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    },
  ],
  options: {
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      extensions: [".ts", ".mjs", ".js", ".json"],
      conditionNames: ["import", "node", "default", "types"],
    },
  },
};
