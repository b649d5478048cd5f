// The room rule: imports point down this list only. The picture of who imports whom is docs/rooms.md.
export const rooms = [
  "main",
  "doors",
  "commands",
  "goals",
  "agent",
  "prompt",
  "plugins",
  "mcp",
  "checkpoints",
  "tools",
  "cron",
  "kanban",
  "skills",
  "memory",
  "sandbox",
  "sessions",
  "llm",
  "safety",
  "home",
  "kit",
];

const at = (room) => (room === "main" ? "^src/(?:main|built|library|built-library)[.]ts$" : `^src/${room}/`);

const roomRules = rooms.map((room, index) => {
  const below = rooms.slice(index + 1);
  return {
    name: `${room}-imports-downwards`,
    comment: `${room}/ may import itself${below.length > 0 ? ` and ${below.join(", ")}` : ""}`,
    severity: "error",
    from: { path: at(room), pathNot: "[.]test[.]ts$" },
    to: { path: "^src/", pathNot: [room, ...below].map(at) },
  };
});

export default {
  forbidden: [
    ...roomRules,
    {
      name: "doors-are-strangers",
      comment:
        "a door never imports another door; files directly in doors/ serve all of them, the program loads sub-commands of any, `hermes setup` leads through all, the API server runs as a platform of the gateway, and the MCP server offers other programs the chats of the gateway and the turns and rules of the API",
      severity: "error",
      from: {
        path: "^src/doors/([^/]+)/",
        pathNot: [
          "[.]test[.]ts$",
          "^src/doors/cli/(?:program|setup|mcp)[.]ts$",
          "^src/doors/gateway/platforms/api_server/",
          "^src/doors/mcp-server/",
        ],
      },
      to: { path: "^src/doors/[^/]+/", pathNot: "^src/doors/$1/" },
    },
    {
      name: "mcp-server-stands-on-two",
      comment: "of the other doors the MCP server knows the gateway and the API alone, and nothing of their platforms",
      severity: "error",
      from: { path: "^src/doors/mcp-server/", pathNot: "[.]test[.]ts$" },
      to: { path: "^src/doors/(?:(?!mcp-server/|gateway/|api/)[^/]+/|gateway/platforms/)" },
    },
    {
      name: "no-circles",
      severity: "error",
      from: { pathNot: "^src/doors/gateway/platforms/" },
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "no-circles-in-platforms",
      comment: "an entry loads its adapter on demand, and the adapter reads its settings with functions of the entry",
      severity: "error",
      from: { path: "^src/doors/gateway/platforms/" },
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only", "dynamic-import"] } },
    },
    {
      name: "product-does-not-import-tests",
      severity: "error",
      from: { path: "^src/", pathNot: "[.]test[.]ts$" },
      to: { path: "^test/|[.]test[.]ts$" },
    },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "packages-of-the-product",
      comment:
        "package.json names what the product imports, test/package.json what is there for building and testing it",
      severity: "error",
      from: { path: "^src/", pathNot: ["[.]test[.]ts$", "^src/doors/gateway/platforms/"] },
      // The browser driver is installed with its first use, and so is what a platform's adapter talks through.
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"], pathNot: "/playwright-core/" },
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
