// Services for pictures and speech that do not speak OpenAI's protocol: where they stand, whose key they take.

import { providerNames } from "../extra-providers.ts";
import type { ToolContext } from "../toolset/context.ts";
import { type Endpoint, MediaError, mediaEndpoint, textOf, UnknownProviderError } from "./endpoint.ts";

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

/** A name in the settings that nobody here goes by. */
function unknownName({ section, settings, service }: Choice): MediaError {
  const brought = providerNames(section);
  const others = brought.length > 0 ? `, ${brought.join(", ")} of your plugins` : "";
  return new MediaError(
    `${section}.provider in config.yaml is "${textOf(settings.provider)}", which is not there. Use openai, ${service.name}, a provider of models that speaks ` +
      `OpenAI's protocol${others}, or give ${section}.base_url and ${section}.api_key instead.`,
  );
}

/** The service when the settings name it, or when nothing is named and only its key is there; else an endpoint like OpenAI's. */
export function chooseEndpoint({ section, settings, service }: Choice, ctx: ToolContext): Endpoint {
  const named = textOf(settings.provider);
  if (named === service.name) return serviceEndpoint({ section, settings, service }, ctx);
  try {
    return mediaEndpoint(section, settings, ctx);
  } catch (error) {
    if (error instanceof UnknownProviderError) throw unknownName({ section, settings, service });
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
