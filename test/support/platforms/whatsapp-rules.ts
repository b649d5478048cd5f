// What Meta's documentation of the Cloud API allows in a message and in an upload.

// biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes are judged here
type Body = any;

export interface UploadedFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly name: string;
}

export interface Problem {
  readonly code: number;
  readonly message: string;
}

const wrong = (message: string, code = 100): Problem => ({ code, message: `Invalid parameter: ${message}` });

const FIELDS = new Set([
  ..."messaging_product recipient_type to type context biz_opaque_callback_data".split(" "),
  ..."text image audio video document sticker location contacts interactive template reaction".split(" "),
]);

const MB = 1024 * 1024;
/** The largest of each kind, and what it may be. */
const MEDIA: Readonly<Record<string, { readonly most: number; readonly types: RegExp }>> = {
  image: { most: 5 * MB, types: /^image\/(?:jpeg|png)$/ },
  audio: { most: 16 * MB, types: /^audio\/(?:aac|mp4|mpeg|amr|ogg|opus)$/ },
  video: { most: 16 * MB, types: /^video\/(?:mp4|3gpp)$/ },
  document: { most: 100 * MB, types: /./ },
};

/** Null: it would be taken. */
export function judgeMessage(body: Body, files: ReadonlyMap<string, UploadedFile>): Problem | null {
  const unknown = Object.keys(body).find((name) => !FIELDS.has(name));
  if (unknown) return wrong(`unexpected key "${unknown}"`);
  if (body.messaging_product !== "whatsapp") return wrong("messaging_product is required");
  if (!/^\d{7,15}$/.test(body.to)) return wrong("to is not a number in its international form", 131009);
  if (body.context && !/^wamid\./.test(body.context.message_id)) return wrong("context.message_id");
  if (body.biz_opaque_callback_data !== undefined && String(body.biz_opaque_callback_data).length > 512)
    return wrong("biz_opaque_callback_data is too long");
  if (!FIELDS.has(body.type) || typeof body[body.type] !== "object") return wrong(`type ${body.type}`);
  if (body.type === "text") return judgeText(body.text);
  if (body.type === "interactive") return judgeInteractive(body.interactive);
  return judgeMedia(body.type, body[body.type], files);
}

function judgeText({ body, preview_url: preview }: Body): Problem | null {
  if (typeof body !== "string" || body.trim() === "") return wrong("text.body is required");
  if (body.length > 4096) return wrong("text.body must be at most 4096 characters long");
  return preview === undefined || typeof preview === "boolean" ? null : wrong("preview_url");
}

function judgeInteractive({ type, body, action }: Body): Problem | null {
  if (typeof body?.text !== "string" || body.text === "") return wrong("interactive.body is required");
  if (body.text.length > 1024) return wrong("interactive.body.text must be at most 1024 characters long");
  if (type === "button") return judgeButtons(action?.buttons ?? []);
  if (type === "list") return judgeList(action);
  return wrong(`interactive.type ${type}`);
}

function judgeButtons(buttons: readonly Body[]): Problem | null {
  if (buttons.length < 1 || buttons.length > 3) return wrong("buttons must be 1 to 3", 131009);
  for (const { type, reply } of buttons) {
    if (type !== "reply") return wrong("button type");
    if (!reply.title || reply.title.length > 20) return wrong("button title must be at most 20 characters", 131009);
    if (!reply.id || reply.id.length > 256) return wrong("button id must be at most 256 characters", 131009);
  }
  const areUnique = new Set(buttons.map(({ reply }) => reply.title)).size === buttons.length;
  return areUnique ? null : wrong("button titles must be unique", 131009);
}

function judgeList({ button, sections }: Body): Problem | null {
  if (!button || button.length > 20) return wrong("the button of a list must be at most 20 characters", 131009);
  const rows: readonly Body[] = sections.flatMap((section: Body) => section.rows);
  if (rows.length < 1 || rows.length > 10) return wrong("a list has 1 to 10 rows", 131009);
  for (const { id, title, description = "" } of rows) {
    if (!title || title.length > 24) return wrong("row title must be at most 24 characters", 131009);
    if (!id || id.length > 200) return wrong("row id must be at most 200 characters", 131009);
    if (description.length > 72) return wrong("row description must be at most 72 characters", 131009);
  }
  return new Set(rows.map(({ id }) => id)).size === rows.length ? null : wrong("row ids must be unique", 131009);
}

function judgeMedia(type: string, part: Body, files: ReadonlyMap<string, UploadedFile>): Problem | null {
  const file = files.get(part.id);
  const limits = MEDIA[type];
  if (!limits) return wrong(`type ${type}`);
  if (!file) return { code: 131053, message: "Media upload error: unknown id" };
  if (!limits.types.test(file.type) || file.bytes.length > limits.most)
    return { code: 131053, message: `Media upload error: ${file.type} of ${file.bytes.length} bytes as ${type}` };
  if (type === "audio" && part.caption !== undefined) return wrong("audio has no caption");
  if (String(part.caption ?? "").length > 1024) return wrong("caption must be at most 1024 characters");
  return type !== "document" && part.filename !== undefined ? wrong("filename") : null;
}

const UPLOADS = [
  ..."audio/aac audio/mp4 audio/mpeg audio/amr audio/ogg audio/opus image/jpeg image/png image/webp".split(" "),
  ..."video/mp4 video/3gpp text/plain application/pdf application/msword application/vnd.ms-excel".split(" "),
  "application/vnd.ms-powerpoint",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
];

export function judgeUpload(form: FormData): Problem | null {
  const file = form.get("file");
  if (form.get("messaging_product") !== "whatsapp") return wrong("(#100) The parameter messaging_product is required.");
  if (!(file instanceof File)) return wrong("(#100) The parameter file is required.");
  if (!UPLOADS.includes(file.type))
    return wrong(`Param file must be a file with one of the following types: ${UPLOADS}`);
  return form.get("type") === file.type ? null : wrong("type");
}
