// A server's input schema in the shape tool lists have here. What providers refuse beyond that is put right when the list is made.
type Node = Record<string, unknown>;

/** `definitions` become `$defs` with the references rewritten; type and properties are there; `required` names existing ones. */
export function toolParameters(schema: unknown): Node {
  const moved = moveDefinitions(isNode(schema) ? schema : {});
  const properties = isNode(moved.properties) ? moved.properties : {};
  const { required, ...rest } = moved;
  const kept = Array.isArray(required) ? required.filter((key) => typeof key === "string" && key in properties) : [];
  return { ...rest, type: "object", properties, ...(kept.length > 0 ? { required: kept } : {}) };
}

function moveDefinitions(schema: Node): Node {
  const { $schema: _dialect, definitions, ...rest } = walkNode(schema);
  if (!isNode(definitions)) return rest;
  return { ...rest, $defs: { ...definitions, ...(isNode(rest.$defs) ? rest.$defs : {}) } };
}

function walk(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(walk);
  return isNode(value) ? walkNode(value) : value;
}

function walkNode(node: Node): Node {
  return Object.fromEntries(
    Object.entries(node).map(([key, inner]) => {
      if (key === "$ref" && typeof inner === "string") return [key, inner.replace(/^#\/definitions\//, "#/$defs/")];
      // The keys of these are names, not keywords: a parameter may be called "$ref" or "definitions".
      const names = key === "properties" || key === "definitions" || key === "$defs";
      if (!names || !isNode(inner)) return [key, key === "default" || key === "examples" ? inner : walk(inner)];
      return [key, Object.fromEntries(Object.entries(inner).map(([name, schema]) => [name, walk(schema)]))];
    }),
  );
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
