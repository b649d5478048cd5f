// Services for pictures and speech that do not speak OpenAI's protocol: where they stand, whose key they take.
import type { ToolContext } from "../context.ts";
import { type Endpoint, MediaError, mediaEndpoint, textOf } from "./endpoint.ts";

export interface MediaService {
  /** As `provider` names it in config.yaml. */
  readonly name: string;
  readonly title: string;
  readonly keyName: string;
  readonly baseUrl: string;
  headers(key: string): Readonly<Record<string, string>>;
}

export interface Choice {
  readonly section: "image_gen" | "tts";
  readonly settings: Readonly<Record<string, unknown>>;
  readonly service: MediaService;
}

/** The service when the settings name it, or when nothing is named and only its key is there; else an endpoint like OpenAI's. */
export function chooseEndpoint({ section, settings, service }: Choice, ctx: ToolContext): Endpoint {
  const named = textOf(settings.provider);
  if (named === service.name) return serviceEndpoint({ section, settings, service }, ctx);
  try {
    return mediaEndpoint(section, settings, ctx);
  } catch (error) {
    if (!(error instanceof MediaError) || named !== undefined || textOf(settings.base_url) !== undefined) throw error;
    if (ctx.env?.(service.keyName)?.trim()) return serviceEndpoint({ section, settings, service }, ctx);
    throw new MediaError(`${error.message} ${service.title} is used when ${service.keyName} is set.`);
  }
}

function serviceEndpoint({ section, settings, service }: Choice, ctx: ToolContext): Endpoint {
  const own = textOf(settings.api_key);
  const apiKey = own ?? ctx.env?.(service.keyName)?.trim() ?? "";
  if (apiKey === "")
    throw new MediaError(
      `Not configured: ${service.title} has no key. Set ${service.keyName} (hermes config set ${service.keyName} ...) or ${section}.api_key in config.yaml.`,
    );
  const baseUrl = (textOf(settings.base_url) ?? service.baseUrl).replace(/\/+$/, "");
  // A key that belongs to the service goes nowhere else; one that stands beside another address belongs to that.
  const bound = own === undefined ? { keyHosts: [new URL(service.baseUrl).hostname] } : {};
  return { provider: service.name, baseUrl, apiKey, headers: service.headers(apiKey), ...bound };
}
