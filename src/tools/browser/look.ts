// browser_vision: a screenshot of the page in front, shown to a model that sees.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../media/cache-folder.ts";
import { showPicture } from "../media/pictures.ts";
import type { ToolContext } from "../toolset/context.ts";
import type { ToolOutput } from "../toolset/registry.ts";
import { type Answer, explain, run, type Scene } from "./command.ts";
import { type Box, outlinePage, placedElements, type TreeNode } from "./page.ts";
import { labelScript, UNLABEL_SCRIPT } from "./page-scripts.ts";

const MOST_LABELS = 100;

export interface LookArguments {
  readonly question: string;
  readonly annotate?: boolean | undefined;
}

export async function look({ question, annotate = false }: LookArguments, ctx: ToolContext): Promise<ToolOutput> {
  let bytes: Buffer | undefined;
  try {
    const answer = await run(ctx, {}, async (scene) => {
      const shot = await photograph(scene, annotate);
      bytes = shot.bytes;
      const name = `browser_${ctx.clock.now()}_${Math.floor(ctx.clock.random() * 1e6)}.png`;
      const path = join(await cacheFolder(ctx.home, "screenshots"), name);
      await writeFile(path, shot.bytes, { mode: 0o600 });
      return { screenshot_path: path, url: scene.page.url(), ...shot.facts };
    });
    if (!bytes) return JSON.stringify({ success: true, ...answer }); // a dialog stood in front of the page
    return await showPicture({ bytes, type: "image/png" }, question, answer, ctx);
  } catch (error) {
    ctx.signal.throwIfAborted();
    return JSON.stringify({ success: false, error: explain(error) });
  }
}

async function photograph(
  { browser, page, timeout }: Scene,
  annotate: boolean,
): Promise<{ bytes: Buffer; facts: Answer }> {
  if (!annotate) return { bytes: await page.screenshot({ timeout }), facts: {} };
  const tree = (await page.ariaSnapshotJSON({ mode: "ai", boxes: true, timeout })) as (TreeNode | string)[]; // the library gives its tree as plain JSON
  browser.refs = outlinePage(tree, { full: false }).refs;
  const window = page.viewportSize() ?? { width: 1280, height: 800 };
  const places = placedElements(tree)
    .filter(({ box }) => isVisible(box, window))
    .slice(0, MOST_LABELS)
    .map(({ ref, box }) => ({ label: `@${ref}`, box }));
  await page.evaluate(labelScript(places));
  try {
    return { bytes: await page.screenshot({ timeout }), facts: { annotated: places.map(({ label }) => label) } };
  } finally {
    await page.evaluate(UNLABEL_SCRIPT).catch(() => undefined); // the page went away, and the labels with it
  }
}

function isVisible({ x, y, width, height }: Box, window: { readonly width: number; readonly height: number }): boolean {
  return width > 0 && height > 0 && x < window.width && y < window.height && x + width > 0 && y + height > 0;
}
