// The pictures of the message that is being written: attached by command, key, drop or option, shown as badges under the input.
import { homedir } from "node:os";
import type { Component } from "@earendil-works/pi-tui";
import { messageOf } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import type { ContentPart, UserInput } from "../../llm/messages.ts";
import type { Picture } from "../../tools/media/user-pictures.ts";
import { cut, printable, type Theme } from "../terminal-text.ts";
import type { ChatRequest } from "../typed-input.ts";
import { shownText } from "./turns.ts";

interface AttachmentsOptions {
  readonly theme: Theme;
  readonly input: {
    draft: string;
    /** The draft becomes this text, long pastes in it short again. */
    putBack(text: string): void;
    /** Puts text where the cursor is. */
    paste(text: string): void;
  };
  readonly transcript: {
    dim(text: string): void;
    warn(text: string): void;
  };
  onChange(): void;
}

interface AttachingRequest extends Pick<ChatRequest, "cwd" | "pictures"> {
  readonly home: Pick<ChatRequest["home"], "environment">;
}

interface Attached {
  readonly name: string;
  readonly number: number;
  readonly picture: Picture;
}

// Reading paths is only worth it where something looks like one.
const LOOKS_LIKE_PATH = /^\s*["']?(?:[/~]|\.{1,2}\/|file:|[A-Za-z]:\\)/;

/** By their names; only of these a message may be stopped. */
const SENDABLE = /\.(?:png|jpe?g|gif|webp)$/i;

export class Attachments implements Component {
  readonly #request: AttachingRequest;
  readonly #options: AttachmentsOptions;
  #list: readonly Attached[] = [];
  #stashed: readonly Attached[] = [];
  #count = 0;
  /** Pictures that are being read; a message that is sent meanwhile waits for them. */
  #reading = 0;
  /** One after the other, so that messages keep their order. */
  #work: Promise<unknown> = Promise.resolve();
  readonly #known = new WeakMap<ContentPart, Attached>();

  constructor(request: AttachingRequest, options: AttachmentsOptions) {
    this.#request = request;
    this.#options = options;
    this.#attach(request.pictures ?? []);
  }

  /** Those that are still being read included. */
  get count(): number {
    return this.#list.length + this.#reading;
  }

  render(width: number): string[] {
    return this.#list.length === 0 ? [] : [this.#options.theme.accent(cut(badges(this.#list, width), width))];
  }

  invalidate(): void {
    // drawn anew for every frame
  }

  add(pictures: readonly Picture[]): readonly Attached[] {
    const added = this.#attach(pictures);
    this.#options.onChange();
    return added;
  }

  removeLast(): void {
    const last = this.#list.at(-1);
    if (last && last.number === this.#count) this.#count--;
    this.#list = this.#list.slice(0, -1);
  }

  clear(): void {
    while (this.#list.length > 0) this.removeLast();
  }

  /** Goes with the draft: away with it, and back on an empty line. */
  stash({ restore }: { readonly restore: boolean }): void {
    const [list, stashed] = restore ? [[...this.#list, ...this.#stashed], []] : [[], this.#list];
    this.#list = list;
    this.#stashed = stashed;
  }

  /** Another conversation counts from one. */
  renumber(): void {
    this.#count = 0;
    this.#list = this.#list.map((attached) => ({ ...attached, number: ++this.#count }));
    for (const attached of this.#list) this.#known.set(attached.picture.part, attached);
  }

  /** `/image`: the files the line begins with are attached. Resolves to the rest of the line; null when nothing was attached, as was shown. */
  attachLine(line: string): Promise<string | null> {
    return this.#read(async () => {
      const { isPictureName, readDropped } = await import("./dropped-paths.ts");
      const { files, rest } = await readDropped(line, this.#places(), { anyName: true });
      const [next = ""] = rest.split(/\s/, 1);
      if (files.length === 0 || isPictureName(next)) throw new Error(`No such file: ${next || line}`);
      const added = this.add(await picturesOf(files.map(({ path }) => path)));
      this.#options.transcript.dim(`📎 ${added.map(({ name, number }) => `Image #${number}: ${name}`).join(", ")}`);
      return rest;
    });
  }

  /**
   * Text that was pasted on an empty line: is it nothing but pictures, they take its place. A terminal pastes an empty text when there is
   * something else on the clipboard.
   */
  async pasted(text: string): Promise<void> {
    if (text === "") return this.paste();
    if (!LOOKS_LIKE_PATH.test(text)) return;
    const { input } = this.#options;
    await this.#read(async () => {
      const { readDropped } = await import("./dropped-paths.ts");
      const { files, rest } = await readDropped(text, this.#places());
      if (files.length === 0 || rest !== "" || !files.every(({ isPicture }) => isPicture)) return;
      const pictures = await picturesOf(files.map(({ path }) => path));
      if (!input.draft.startsWith(text)) return;
      input.draft = input.draft.slice(text.length).trimStart();
      this.add(pictures);
    });
  }

  /** The picture on the clipboard is attached, a text goes into the input. */
  async paste(): Promise<void> {
    await this.#read(async () => {
      const { readClipboard } = await import("./clipboard.ts");
      const held = await readClipboard(this.#request.home.environment());
      if (held.type === "nothing") return this.#options.transcript.warn(held.why);
      if (held.type === "text") return this.#options.input.paste(held.text);
      const { pictureOf } = await import("../../tools/media/user-pictures.ts");
      this.add([await pictureOf(held.bytes, { name: "clipboard.png", shownAs: "The picture on the clipboard" })]);
    });
  }

  /**
   * The message with what is attached to it and dropped into it. Null when it cannot go out as it is: the reason was shown, and what was
   * typed is in the input again.
   */
  compose(input: UserInput): Promise<UserInput | null> {
    return this.#inTurn(async () => {
      const attached = this.takeOnto(input);
      try {
        return LOOKS_LIKE_PATH.test(input.text) ? await this.#withDropped(attached) : attached;
      } catch (error) {
        this.#options.transcript.warn(`${messageOf(error)} Nothing was sent.`);
        this.handBack(attached);
        return null;
      }
    });
  }

  /** What is attached goes out with this message. */
  takeOnto(input: UserInput): UserInput {
    const parts = [...(input.parts ?? []), ...this.#list.map(({ picture }) => picture.part)];
    this.#list = [];
    return parts.length === 0 ? input : { ...input, parts };
  }

  /** Only with pictures that were attached: those that its text points at are read again. */
  carrying({ parts = [], ...input }: UserInput): UserInput {
    const own = parts.filter((part) => this.#known.has(part));
    return own.length === 0 ? input : { ...input, parts: own };
  }

  /** A message that was not sent is the user's again. */
  handBack(message: UserInput): void {
    const { input, onChange } = this.#options;
    this.putBack(message);
    if (input.draft === "") input.putBack(shownText(message));
    onChange();
  }

  /** The pictures of a message are attached again, under the numbers they had. */
  putBack({ parts = [] }: UserInput): void {
    const back = parts.flatMap((part) => this.#known.get(part) ?? []);
    this.#list = [...this.#list, ...back].toSorted((a, b) => a.number - b.number);
  }

  /** As the model is to be sent it: it is told where the files are. */
  async withPaths(input: UserInput): Promise<UserInput> {
    const pictures = (input.parts ?? []).flatMap((part) => this.#known.get(part)?.picture ?? []);
    if (pictures.length === 0) return input;
    return (await import("../../tools/media/user-pictures.ts")).withPaths(input, pictures);
  }

  /** The message as the transcript shows it. */
  echo(input: UserInput): string {
    const numbers = (input.parts ?? []).map((part) => this.#known.get(part)?.number ?? ++this.#count);
    return [shownText(input), ...numbers.map(imageBadge)].filter((part) => part !== "").join(" ");
  }

  #attach(pictures: readonly Picture[]): readonly Attached[] {
    const added = pictures.map((picture): Attached => {
      const attached = { name: printable(picture.name).replaceAll("\n", " "), number: ++this.#count, picture };
      this.#known.set(picture.part, attached);
      return attached;
    });
    this.#list = [...this.#list, ...added];
    return added;
  }

  async #withDropped(input: UserInput): Promise<UserInput> {
    const { readDropped } = await import("./dropped-paths.ts");
    const { files, rest } = await readDropped(input.text, this.#places());
    if (files.length === 0) return input;
    const pictures: Picture[] = [];
    const references: string[] = [];
    for (const { path, reference, isPicture } of files) {
      const picture = isPicture ? await this.#pictureOrNote(path) : null;
      if (picture) pictures.push(picture);
      else references.push(reference);
    }
    const text = [...references, ...(rest === "" ? [] : [rest])].join(" ");
    if (pictures.length === 0) return { ...input, text };
    this.add(pictures);
    return this.takeOnto({ ...input, text });
  }

  /** Null: a kind that models do not take. The agent can still work on the file. */
  async #pictureOrNote(path: string): Promise<Picture | null> {
    const { PictureError, pictureFile } = await import("../../tools/media/user-pictures.ts");
    try {
      return await pictureFile(path);
    } catch (error) {
      const isOtherKind = error instanceof PictureError && (error.kind === "unsupported" || !SENDABLE.test(path));
      if (!isOtherKind) throw error;
      this.#options.transcript.dim(`${error.message} Its path is sent instead.`);
      return null;
    }
  }

  /** What fails is shown and changes nothing. */
  async #read<T>(work: () => Promise<T>): Promise<T | null> {
    this.#reading++;
    this.#options.onChange();
    try {
      return await this.#inTurn(work);
    } catch (error) {
      this.#options.transcript.warn(messageOf(error));
      return null;
    } finally {
      this.#reading--;
      this.#options.onChange();
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => undefined); // whoever asked for it hears of it
    return done;
  }

  #places() {
    return { cwd: this.#request.cwd, userHome: homedir() };
  }
}

async function picturesOf(paths: readonly string[]): Promise<readonly Picture[]> {
  const { pictureFile } = await import("../../tools/media/user-pictures.ts");
  return Promise.all(paths.map((path) => pictureFile(path)));
}

const imageBadge = (number: number) => `[📎 Image #${number}]`;

/** Less of it in a narrow terminal. */
export function badges(attached: readonly Pick<Attached, "name" | "number">[], width: number): string {
  const [first] = attached;
  if (!first) return "";
  if (width >= 80) return attached.map(({ number }) => imageBadge(number)).join(" ");
  if (width >= 52) {
    if (attached.length === 1) return `[📎 ${cut(first.name, 32)}]`;
    return `[📎 ${cut(first.name, 20)}] [+${attached.length - 1}]`;
  }
  return attached.length === 1 ? `[📎 ${cut(first.name, 20)}]` : `[📎 ${plural(attached.length, "image")} attached]`;
}
