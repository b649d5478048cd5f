// The page as text: a tree of roles and names, with a ref on whatever can be acted on.

/** A node of the accessibility tree as the browser library gives it; only what is read here. */
export interface TreeNode {
  readonly role: string;
  readonly name?: string;
  readonly ref?: string;
  readonly text?: string;
  readonly url?: string;
  readonly level?: number;
  readonly cursor?: string;
  readonly value?: unknown;
  readonly checked?: boolean | "mixed";
  readonly disabled?: boolean;
  readonly expanded?: boolean;
  readonly selected?: boolean;
  readonly pressed?: boolean | "mixed";
  readonly active?: boolean;
  readonly box?: Box;
  readonly children?: readonly (TreeNode | string)[];
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface Outline {
  readonly text: string;
  /** Elements that can be acted on. */
  readonly elementCount: number;
  readonly refs: ReadonlySet<string>;
}

const INTERACTIVE = new Set(
  (
    "button link textbox searchbox combobox listbox option checkbox radio switch slider spinbutton tab menuitem " +
    "menuitemcheckbox menuitemradio treeitem"
  ).split(" "),
);
/** Say nothing by themselves: their content stands for them. */
const WRAPPERS = new Set("generic none presentation paragraph list listitem group rowgroup row document".split(" "));
const COMPACT_TEXT = 160;

function isInteractive(node: TreeNode): boolean {
  return INTERACTIVE.has(node.role) || node.cursor === "pointer";
}

/** `full`: every level, all text, link targets. Compact: wrappers left out, long text shortened. */
export function outlinePage(tree: readonly (TreeNode | string)[], { full }: { readonly full: boolean }): Outline {
  const lines: string[] = [];
  const refs = new Set<string>();
  let elementCount = 0;
  const say = (depth: number, line: string) => lines.push(`${"  ".repeat(depth)}- ${line}`);
  const visit = (node: TreeNode | string, depth: number): void => {
    if (typeof node === "string") {
      const text = shorten(node, full);
      if (text !== "") say(depth, text);
      return;
    }
    if (node.ref !== undefined) refs.add(node.ref);
    const acts = isInteractive(node);
    if (acts) elementCount++;
    const children = node.children ?? [];
    const silent = WRAPPERS.has(node.role) && !acts && !node.name && (!full || node.role === "generic");
    if (silent) {
      if (node.text) visit(node.text, depth);
      for (const child of children) visit(child, depth);
      return;
    }
    say(depth, describe(node, acts, full));
    for (const child of children) if (child !== node.name) visit(child, depth + 1);
  };
  for (const node of tree) visit(node, 0);
  return { text: lines.join("\n"), elementCount, refs };
}

/** Whatever can be acted on, with its box in the window; frames count from their own corner, so their offset is added. */
export function elementBoxes(tree: readonly (TreeNode | string)[]): { readonly ref: string; readonly box: Box }[] {
  const found: { ref: string; box: Box }[] = [];
  const visit = (node: TreeNode | string, dx: number, dy: number): void => {
    if (typeof node === "string") return;
    const { box, ref } = node;
    if (ref !== undefined && box && isInteractive(node))
      found.push({ ref, box: { ...box, x: box.x + dx, y: box.y + dy } });
    const inside = node.role === "iframe" && box ? { dx: dx + box.x, dy: dy + box.y } : { dx, dy };
    for (const child of node.children ?? []) visit(child, inside.dx, inside.dy);
  };
  for (const node of tree) visit(node, 0, 0);
  return found;
}

function describe(node: TreeNode, acts: boolean, full: boolean): string {
  const marks = [
    acts || node.role === "iframe" ? node.ref && `@${node.ref}` : "",
    node.level === undefined ? "" : `[level=${node.level}]`,
    ...(["checked", "pressed"] as const).map((key) => (node[key] === undefined ? "" : `[${key}=${node[key]}]`)),
    ...(["disabled", "expanded", "selected"] as const).map((key) => (node[key] ? `[${key}]` : "")),
    full && node.url ? `-> ${node.url}` : "",
  ].filter(Boolean);
  const name = node.name ? ` ${JSON.stringify(shorten(node.name, full))}` : "";
  const value = node.text ?? (typeof node.value === "string" ? node.value : "");
  const text = value && value !== node.name ? `: ${shorten(value, full)}` : "";
  return `${node.role}${name}${marks.length > 0 ? ` ${marks.join(" ")}` : ""}${text}`;
}

function shorten(text: string, full: boolean): string {
  const line = text.replace(/\s+/g, " ").trim();
  return full || line.length <= COMPACT_TEXT ? line : `${line.slice(0, COMPACT_TEXT).toWellFormed()}…`;
}

// What runs inside pages. As text: it belongs to another world than the code around it, and no bundler may touch it.

/** -> {at, of}: where the page stands now, and how far it can go. */
export function scrollScript(sign: 1 | -1): string {
  return `(() => {
    window.scrollBy({ top: ${sign} * window.innerHeight * 0.8, behavior: "instant" });
    const most = document.documentElement.scrollHeight - window.innerHeight;
    return { at: Math.round(window.scrollY), of: Math.max(0, Math.round(most)) };
  })()`;
}

export interface PageImage {
  readonly src: string;
  readonly alt: string;
  readonly width: number;
  readonly height: number;
}

/** -> PageImage[] */
export const IMAGES_SCRIPT = `[...document.images].map((image) => ({
  src: image.currentSrc || image.src, alt: image.alt, width: image.naturalWidth, height: image.naturalHeight,
}))`;

/** -> string[]: what stands in the page's password fields. */
export const PASSWORDS_SCRIPT = `[...document.querySelectorAll("input[type=password]")].map((field) => field.value)`;

const LABELS_ID = "hermes-annotations";

/** Draws a frame and a label around each box; taken off again by `UNLABEL_SCRIPT`. */
export function labelScript(boxes: readonly { readonly label: string; readonly box: object }[]): string {
  return `(() => {
    const layer = document.createElement("div");
    layer.id = ${JSON.stringify(LABELS_ID)};
    layer.style.cssText = "position:fixed;inset:0;z-index:2147483647;pointer-events:none";
    for (const { label, box } of ${JSON.stringify(boxes)}) {
      const frame = document.createElement("div");
      frame.style.cssText = "position:absolute;border:2px solid #e11d48;box-sizing:border-box;left:" + box.x + "px;top:" + box.y +
        "px;width:" + box.width + "px;height:" + box.height + "px";
      const tag = document.createElement("div");
      tag.textContent = label;
      tag.style.cssText = "position:absolute;left:0;top:-2px;transform:translateY(-100%);background:#e11d48;color:#fff;" +
        "font:bold 11px/13px sans-serif;padding:0 3px";
      if (box.y < 15) tag.style.transform = "none";
      frame.append(tag);
      layer.append(frame);
    }
    document.documentElement.append(layer);
  })()`;
}

export const UNLABEL_SCRIPT = `document.getElementById(${JSON.stringify(LABELS_ID)})?.remove()`;
