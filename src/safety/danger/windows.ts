import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { programRule, type RuleGroup } from "../scene.ts";

const CMD_DELETE = /(?:^|[&|("]\s*)(?:del|erase|rd|rmdir|format)(?:\.exe)?(?=[\s/"]|$)/i;
const POWERSHELL_DELETE =
  /(?:^|[\s;|&{("'])(?:remove-item|ri|rm|rmdir|rd|del|erase|clear-content|clear-disk|format-volume)(?=[\s;)}"']|$)/i;

function cmdText(invocation: Invocation): string | null {
  const args = argTexts(invocation);
  const at = args.findIndex((arg) => /^\/{1,2}[ck]$/i.test(arg));
  return at < 0 ? null : args.slice(at + 1).join(" ");
}

function hasEncodedCommand(invocation: Invocation): boolean {
  return argTexts(invocation).some((arg) => {
    const name = /^[-/]([a-z]+)$/i.exec(arg)?.[1]?.toLowerCase();
    return name !== undefined && (name === "ec" || "encodedcommand".startsWith(name));
  });
}

export const windows: RuleGroup = {
  reason: "removes files or runs hidden code through a Windows shell",
  rules: [
    programRule("Windows cmd destructive delete", ["cmd"], (invocation) => CMD_DELETE.test(cmdText(invocation) ?? "")),
    {
      key: "Windows PowerShell destructive delete",
      matches: (scene) =>
        scene.invocations.some((invocation) =>
          invocation.program === "pwsh" || invocation.program === "powershell"
            ? POWERSHELL_DELETE.test(argTexts(invocation).join(" "))
            : /^(?:remove-item|format-volume|clear-disk)$/.test(invocation.program),
        ),
    },
    programRule("PowerShell encoded command execution", ["pwsh", "powershell"], hasEncodedCommand),
  ],
};
