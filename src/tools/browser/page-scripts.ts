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

/** Draws a frame and a label around each place; taken off again by `UNLABEL_SCRIPT`. */
export function labelScript(places: readonly { readonly label: string; readonly box: object }[]): string {
  return `(() => {
    const layer = document.createElement("div");
    layer.id = ${JSON.stringify(LABELS_ID)};
    layer.style.cssText = "position:fixed;inset:0;z-index:2147483647;pointer-events:none";
    for (const { label, box } of ${JSON.stringify(places)}) {
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
