// One model on one line: id | context | output | flags (i images, r reasoning) | prices | tier;tier ...
// with prices = input,output,cacheRead,cacheWrite. Thousands of them load much quicker than as objects.

/** US dollars per million tokens. */
export interface PublishedPrice {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number | null;
  readonly cacheWrite: number | null;
}

export interface ModelFacts {
  readonly id: string;
  readonly contextLength: number | null;
  readonly maxOutput: number | null;
  readonly images: boolean;
  readonly reasoning: boolean;
  readonly price: PublishedPrice | null;
  /** Prices of requests with more prompt tokens than `above`, smallest first. */
  readonly tiers: readonly (PublishedPrice & { readonly above: number })[];
}

export function readFactLine(line: string): ModelFacts {
  const [id = "", context = "", output = "", flags = "", price = "", tiers = ""] = line.split("|");
  return {
    id,
    contextLength: context ? Number(context) : null,
    maxOutput: output ? Number(output) : null,
    images: flags.includes("i"),
    reasoning: flags.includes("r"),
    price: price ? readPrice(price) : null,
    tiers: tiers
      ? tiers
          .split(";")
          .map((tier) => {
            const colon = tier.indexOf(":");
            return { above: Number(tier.slice(0, colon)), ...readPrice(tier.slice(colon + 1)) };
          })
          .sort((a, b) => a.above - b.above)
      : [],
  };
}

export function writeFactLine({ id, contextLength, maxOutput, images, reasoning, price, tiers }: ModelFacts): string {
  const flags = `${images ? "i" : ""}${reasoning ? "r" : ""}`;
  const above = tiers.map((tier) => `${tier.above}:${writePrice(tier)}`).join(";");
  const fields = [id, contextLength ?? "", maxOutput ?? "", flags, price ? writePrice(price) : "", above];
  return fields.join("|").replace(/\|+$/, "");
}

function readPrice(text: string): PublishedPrice {
  const [input = "", output = "", cacheRead = "", cacheWrite = ""] = text.split(",");
  return {
    input: Number(input),
    output: Number(output),
    cacheRead: cacheRead === "" ? null : Number(cacheRead),
    cacheWrite: cacheWrite === "" ? null : Number(cacheWrite),
  };
}

function writePrice({ input, output, cacheRead, cacheWrite }: PublishedPrice): string {
  return [input, output, cacheRead ?? "", cacheWrite ?? ""].join(",");
}
