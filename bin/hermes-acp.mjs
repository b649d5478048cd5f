#!/usr/bin/env node
// `hermes acp` under a name of its own, for editors that take a program without arguments.
process.argv.splice(2, 0, "acp");
await import("./hermes.mjs");
