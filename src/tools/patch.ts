// patch: a change to a part of a file, or to several files at once.
import { z } from "zod";
import { describeFileError } from "./files/access.ts";
import { applyPatch, failed, replaceInFile } from "./files/apply-patch.ts";
import { openWorkspace } from "./files/workspace.ts";
import type { ToolContext } from "./toolset/context.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  mode: z.enum(["replace", "patch"]).optional().describe("default replace"),
  path: z.string().optional().describe("replace: the file"),
  old_string: z.string().optional().describe("replace: text in the file, unique unless replace_all"),
  new_string: z.string().optional().describe("replace: what takes its place; empty deletes"),
  replace_all: z.boolean().optional(),
  patch: z.string().optional().describe("patch: the whole patch text"),
  cross_profile: z.boolean().optional().describe("the user asked for another profile"),
});

register({
  name: "patch",
  toolset: "file",
  emoji: "🔧",
  description: `Change part of a file. mode=replace puts new_string where old_string stands; small differences in white space and quotes are forgiven. mode=patch changes several files, all or none:
*** Begin Patch
*** Update File: path
@@ line above the place @@
 context
-removed
+added
*** Add File: path
+line
*** Delete File: path
*** Move File: old -> new
*** End Patch`,
  parameters,
  verbatim: ["old_string", "new_string"],
  handler: (args, ctx) => patch(args, ctx),
});

export async function patch(args: z.infer<typeof parameters>, ctx: ToolContext): Promise<string> {
  const workspace = await openWorkspace(ctx);
  const crossProfile = args.cross_profile ?? false;
  try {
    if (
      args.mode === "patch" ||
      (args.mode === undefined && args.patch !== undefined && args.old_string === undefined)
    ) {
      if (args.patch === undefined || args.patch.trim() === "") return failed("Missing argument: patch (mode=patch).");
      return await applyPatch(args.patch, crossProfile, workspace);
    }
    const { path: asked, old_string: old, new_string: replacement } = args;
    if (asked === undefined || asked.trim() === "") return failed("Missing argument: path (mode=replace).");
    if (old === undefined) return failed("Missing argument: old_string (mode=replace).");
    if (replacement === undefined) return failed("Missing argument: new_string (mode=replace).");
    const absolute = workspace.absolute(asked);
    const refusal = (await workspace.refuseWrite(absolute, crossProfile)) ?? (await workspace.refuseRead(absolute));
    if (refusal !== null) return failed(refusal);
    const path = await workspace.files.resolve(absolute);
    const request = { asked, path, old, new: replacement, replaceAll: args.replace_all ?? false };
    return await workspace.alone([path], (reviewed) => replaceInFile(request, workspace, ctx.signal, reviewed));
  } catch (error) {
    ctx.signal.throwIfAborted();
    return failed(describeFileError(error, args.path ?? "the patch"));
  }
}
