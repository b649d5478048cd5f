// Which characters are written without blanks between words. Half-width kana, full-width Latin and Thai do not count here.
const CJK = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u3000-\u303f\u3040-\u309f\u30a0-\u30ff\uac00-\ud7af]/gu;

export const countCjk = (text: string) => text.match(CJK)?.length ?? 0;
