// What an editor sends as a prompt: text, pictures, files it points at and files it brings along, as one message to the agent.
import { fileURLToPath } from "node:url";
import type { ContentBlock, EmbeddedResource, ResourceLink } from "@agentclientprotocol/sdk";
import { messageOf } from "../../kit/errors.ts";
import { withoutControls } from "../../kit/strip-ansi.ts";
import type { ContentPart, UserInput } from "../../llm/messages.ts";

/** A larger file is named, not brought along: the agent reads what it needs of it. */
const MOST_INLINED_BYTES = 512 * 1024;

export interface EditorPrompt {
  /** As typed: what a command is looked for in. */
  readonly typed: string;
  readonly input: UserInput;
  /** What could not be taken along, for the user. */
  readonly problems: readonly string[];
}

/** The blocks in their order. What a picture or a file cannot be sent for is said, and the rest is sent. */
export async function readPrompt(blocks: readonly ContentBlock[]): Promise<EditorPrompt> {
  const texts: string[] = [];
  const typed: string[] = [];
  const parts: ContentPart[] = [];
  const problems: string[] = [];
  const addPicture = async (data: string, name: string) => {
    const { pictureOf } = await import("../../tools/media/user-pictures.ts");
    try {
      parts.push((await pictureOf(Buffer.from(data, "base64"), { name, shownAs: name })).part);
      return true;
    } catch (error) {
      problems.push(messageOf(error));
      return false;
    }
  };
  for (const block of blocks)
    switch (block.type) {
      case "text":
        texts.push(block.text);
        typed.push(block.text);
        break;
      case "image":
        await addPicture(block.data, block.uri ? placeOf(block.uri) : "the picture");
        break;
      case "resource_link":
        texts.push(linkText(block));
        break;
      case "resource": {
        const { resource } = block;
        const name = placeOf(resource.uri);
        const isPicture = "blob" in resource && /^image\//.test(resource.mimeType ?? "");
        if (!(isPicture && "blob" in resource && (await addPicture(resource.blob, name)))) texts.push(fileText(block));
        break;
      }
      case "audio":
        problems.push("Sound is not taken here; type the message.");
        break;
    }
  const text = texts.join("\n").trim();
  return {
    typed: typed.join("\n").trim(),
    input: { text, ...(parts.length > 0 && { parts }) },
    problems,
  };
}

/** A path where it is one: that is what the agent's tools take. */
function placeOf(uri: string): string {
  const plain = withoutControls(uri);
  if (!plain.startsWith("file:")) return plain;
  try {
    return fileURLToPath(plain);
  } catch {
    return plain; // of another machine, or broken: as it came
  }
}

function linkText({ name, title, uri, description }: ResourceLink): string {
  const place = placeOf(uri);
  const shown = withoutControls(title || name).trim();
  const about = description ? `: ${withoutControls(description)}` : "";
  return shown === "" || place.endsWith(shown) ? `[${place}${about}]` : `[${shown} (${place})${about}]`;
}

function fileText({ resource }: EmbeddedResource): string {
  const place = placeOf(resource.uri);
  if ("blob" in resource) return `[Attached file, binary (${resource.mimeType ?? "type unknown"}): ${place}]`;
  const bytes = Buffer.byteLength(resource.text);
  if (bytes > MOST_INLINED_BYTES)
    return `[Attached file, ${bytes} bytes, too large to include: ${place}. Read what you need of it.]`;
  const fence = "`".repeat(Math.max(3, ...[...resource.text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length + 1)));
  return `[Attached file: ${place}]\n${fence}\n${resource.text}\n${fence}`;
}
