import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { asksForHelp, optionsOf, pathOf, programRule, type RuleGroup, type Scene, writtenFiles } from "../scene.ts";

/** More kinds than the hardline knows: a question costs little. */
const isDevice = (path: string) =>
  /^\/dev\/(?:sd[a-z]|nvme[0-9]|hd[a-z]|mmcblk[0-9]|vd[a-z]|xvd[a-z]|r?disk[0-9]|dm-|mapper\/|md[0-9]|loop[0-9])/.test(
    path,
  );

function writesDevice(invocation: Invocation, scene: Scene): boolean {
  if (writtenFiles(invocation).some((file) => isDevice(pathOf(file, invocation, scene)))) return true;
  const { program } = invocation;
  if (program === "dd") return operandsOf(invocation, scene).some((path) => isDevice(path));
  if (program === "cp" || program === "mv") {
    return isDevice(pathOf(optionsOf(invocation).operands.at(-1) ?? "", invocation, scene));
  }
  return /^(?:shred|blkdiscard)$/.test(program) && optionsOf(invocation).operands.some(isDevice);
}

const operandsOf = (invocation: Invocation, scene: Scene) =>
  argTexts(invocation)
    .filter((arg) => /^of=/i.test(arg))
    .map((arg) => pathOf(arg.slice(3), invocation, scene));

export const disk: RuleGroup = {
  reason: "writes to disks below the file system",
  rules: [
    {
      key: "format filesystem",
      matches: (scene) =>
        scene.invocations.some(
          (invocation) =>
            /^(?:mkfs(?:\..*)?|mke2fs|newfs(?:_.*)?|mkswap|wipefs)$/.test(invocation.program) &&
            !asksForHelp(invocation),
        ),
    },
    programRule("disk copy", ["dd"], (invocation) => argTexts(invocation).some((arg) => /^if=/i.test(arg))),
    { key: "write to block device", matches: (scene) => scene.invocations.some((one) => writesDevice(one, scene)) },
  ],
};
