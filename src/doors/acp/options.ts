// What can be chosen about a conversation from the editor: the model, and how edits are handled.
import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import type { OpenAgent } from "../../agent/opened.ts";
import { t } from "../../home/language/words.ts";
import { EDIT_MODES, type EditMode, modeWords } from "./edits.ts";

/** A list that is asked of a server is not waited for longer: the editor shows nothing meanwhile. */
const LIST_MS = 1000;
const MOST_MODELS = 200;

export interface ModelRow {
  readonly id: string;
  readonly name: string;
}

/** As editors name a model: provider and name. */
export const modelId = (provider: string, model: string) => `${provider}:${model}`;

/** The two halves again; a name without a provider is one of the provider in use. Names may hold colons of their own. */
export function parseModelId(
  id: string,
  known: readonly ModelRow[],
  present: string,
): { model: string; provider?: string } {
  const colon = id.indexOf(":");
  if (colon <= 0) return { model: id };
  const provider = id.slice(0, colon);
  const isOurs = known.some((row) => row.id === id) || provider === present;
  return isOurs || /^[a-z][\w.-]*$/i.test(provider) ? { model: id.slice(colon + 1), provider } : { model: id };
}

/** Models of the provider in use, the present one first when nobody lists it. `whole`: nothing more comes later. */
export async function knownModels(
  conversation: Pick<OpenAgent, "target" | "knownModels" | "providerName">,
  { patient }: { readonly patient: boolean },
): Promise<{ readonly rows: readonly ModelRow[]; readonly whole: boolean }> {
  const { model } = conversation.target;
  const provider = conversation.providerName;
  const present = { id: modelId(provider, model), name: model };
  const asked = conversation.knownModels().then(
    ({ models }) => models.map(({ id }) => ({ id: modelId(provider, id), name: id })),
    () => [], // a server that does not answer lists nothing
  );
  const late = patient ? null : waited(LIST_MS);
  const found = late === null ? await asked : await Promise.race([asked, late]);
  const rows = (found ?? []).slice(0, MOST_MODELS);
  return { rows: rows.some(({ id }) => id === present.id) ? rows : [present, ...rows], whole: found !== null };
}

async function waited(ms: number): Promise<null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  setTimeout(() => resolve(null), ms).unref();
  return promise;
}

export function configOptions(models: readonly ModelRow[], current: string, mode: EditMode): SessionConfigOption[] {
  return [
    {
      id: "mode",
      name: t("Edits"),
      category: "mode",
      type: "select",
      currentValue: mode,
      options: EDIT_MODES.map((value) => ({ value, ...modeWords(value) })),
    },
    {
      id: "model",
      name: t("Model"),
      category: "model",
      type: "select",
      currentValue: current,
      options: models.map(({ id, name }) => ({ value: id, name })),
    },
  ];
}
