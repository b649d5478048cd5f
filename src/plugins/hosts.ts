// The plugins that run for a home, for whoever only looks: loading nothing, starting nothing.
import { AsyncLocalStorage } from "node:async_hooks";
import type { OpenHome } from "../home/open.ts";
import type { ConversationPort } from "./contract.ts";
import type { PluginHost } from "./host.ts";

export const pluginHosts = new WeakMap<OpenHome, PluginHost>();

/** The conversation that the running code of a plugin belongs to. */
export const current = new AsyncLocalStorage<ConversationPort>();
