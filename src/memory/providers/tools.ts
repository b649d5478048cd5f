// The tools a provider brings, as far as they can be taken.
export interface ProviderTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface TakenTools {
  readonly tools: readonly ProviderTool[];
  readonly warnings: readonly string[];
}

/** `isCore`: names that belong to the program stay its own. */
export function takeProviderTools(schemas: readonly unknown[], isCore: (name: string) => boolean): TakenTools {
  const tools = new Map<string, ProviderTool>();
  const warnings: string[] = [];
  for (const given of schemas) {
    const schema = unwrap(given);
    const name = typeof schema.name === "string" ? schema.name.trim() : "";
    if (name === "") warnings.push("a tool without a name was left out");
    else if (isCore(name)) warnings.push(`the tool "${name}" was left out: the program has one of that name`);
    else if (!tools.has(name)) {
      const { description, parameters } = schema;
      tools.set(name, {
        name,
        description: typeof description === "string" ? description : "",
        parameters: isRecord(parameters) ? parameters : { type: "object", properties: {} },
      });
    }
  }
  return { tools: [...tools.values()], warnings };
}

function unwrap(given: unknown): Readonly<Record<string, unknown>> {
  if (!isRecord(given)) return {};
  return given.type === "function" && isRecord(given.function) ? given.function : given;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
