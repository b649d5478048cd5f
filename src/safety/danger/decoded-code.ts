import type { Invocation } from "../analysis/invocation.ts";
import type { Rule, RuleGroup } from "../scene.ts";
import { executedSubstitutions, isDecoder, isHexDecoder, isOpensslDecoder, isPipedToShell } from "./code-sources.ts";

const decodedRule = (what: string, isSource: (invocation: Invocation) => boolean): Rule => ({
  key: `pipe ${what} to shell (possible command obfuscation)`,
  matches: (scene) =>
    isPipedToShell(scene, isSource) ||
    executedSubstitutions(scene).some(({ invocations }) => invocations.some(isSource)),
});

export const decodedCode: RuleGroup = {
  reason: "runs code that is hidden in an encoding",
  rules: [
    decodedRule("decoded content", isDecoder),
    decodedRule("xxd-decoded content", isHexDecoder),
    decodedRule("tr-transformed output", ({ program }) => /^(?:tr|rev|cut|g?sed|[gmn]?awk)$/.test(program)),
    decodedRule("openssl-decoded content", isOpensslDecoder),
  ],
};
