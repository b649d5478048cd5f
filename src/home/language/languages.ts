// Which languages there are, by which names they are known, and how one is loaded.
import { type Catalogue, useCatalogue } from "./words.ts";

const LANGUAGES = [
  "en",
  "zh",
  "zh-hant",
  "ja",
  "de",
  "es",
  "fr",
  "tr",
  "uk",
  "af",
  "ko",
  "it",
  "ga",
  "pt",
  "ru",
  "hu",
  "ar",
] as const;
type Language = (typeof LANGUAGES)[number];

const ALIASES: Readonly<Record<string, Language>> = {
  chinese: "zh",
  "zh-cn": "zh",
  "zh-sg": "zh",
  "zh-hans": "zh",
  "zh-tw": "zh-hant",
  "zh-hk": "zh-hant",
  "zh-mo": "zh-hant",
  jp: "ja",
  japanese: "ja",
  german: "de",
  deutsch: "de",
  spanish: "es",
  french: "fr",
  turkish: "tr",
  ua: "uk",
  ukrainian: "uk",
  afrikaans: "af",
  kr: "ko",
  korean: "ko",
  italian: "it",
  irish: "ga",
  portuguese: "pt",
  "pt-br": "pt",
  russian: "ru",
  hungarian: "hu",
  arabic: "ar",
  english: "en",
};

/** `zh_TW`, `zh-CN.UTF-8` and `Chinese` are understood; what is unknown is English. */
export function languageOf(name: string): Language {
  const plain = name.trim().toLowerCase().replaceAll("_", "-").split(/[.@]/, 1).join("");
  const known = (text: string) => LANGUAGES.find((one) => one === text) ?? ALIASES[text];
  const parts = plain.split("-");
  return known(plain) ?? known(parts.slice(0, 2).join("-")) ?? known(parts[0] ?? "") ?? "en";
}

/** Everything said from now on is in that language, as far as its catalogue goes. */
export async function useLanguage(name: string): Promise<void> {
  useCatalogue(await catalogueOf(languageOf(name)));
}

export async function catalogueOf(language: Language): Promise<Catalogue> {
  if (language === "en") return {};
  if (language === "zh") return (await import("./chinese.ts")).CHINESE;
  const { APPROVALS } = await import("./approvals.ts");
  return APPROVALS[language] ?? {};
}
