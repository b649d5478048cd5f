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

export interface Outline {
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

export function isInteractive(node: TreeNode): boolean {
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

/** Whatever can be acted on, with its place in the window; frames count from their own corner, so their place is added. */
export function placedElements(tree: readonly (TreeNode | string)[]): { readonly ref: string; readonly box: Box }[] {
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
