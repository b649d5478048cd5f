import type { Json } from "../../kit/moved-json.ts";
import type { ModelRequest } from "../wire.ts";
import { isHost } from "./hosts.ts";

/** OpenAI sells a quicker answer, which its apps call fast; other hosts know other words for it, or none. */
export function tierFields({ target, serviceTier = "" }: ModelRequest): Json {
  if (serviceTier === "" || !isHost(target.baseUrl, "api.openai.com", "chatgpt.com")) return {};
  return { service_tier: serviceTier === "fast" ? "priority" : serviceTier };
}
