// Every sentence of the demo, in both languages.
export interface Words {
  readonly help: string;
  readonly notUnderstood: string;
  noTool(name: string): string;
  failed(name: string, reason: string): string;
  refused(reason: string): string;
  files(count: number): string;
  empty: string;
  more(count: number): string;
  file(path: string): string;
  emptyFile(path: string): string;
  ran(command: string, exitCode: number): string;
  noOutput: string;
  remembered(fact: string): string;
  found(count: number, query: string): string;
  nothingFound(query: string): string;
  skillMade(name: string): string;
  tool(name: string): string;
}

const abilities = [
  "- `list files` or `list files in src`",
  "- `read README.md`",
  "- `run date`",
  "- `remember that I prefer short answers`",
  "- `search past conversations for backups`",
  "- `make a skill called release: 1. run the tests 2. tag`",
].join("\n");

const abilitiesZh = [
  "- `列出文件` 或 `列出 src 的文件`",
  "- `读取 README.md`",
  "- `运行 date`",
  "- `记住：我喜欢简短的回答`",
  "- `搜索以前的对话：备份`",
  "- `创建技能 发布：1. 跑测试 2. 打标签`",
].join("\n");

const connect = "To talk to a real model, run `hermes setup`.";
const connectZh = "要使用真正的模型，请运行 `hermes setup`。";

export const englishWords: Words = {
  help: `I am the built-in demo: no AI and no network, only a few fixed requests that drive the real tools. Try:\n${abilities}\n\n${connect}`,
  notUnderstood: `I am the built-in demo, not an AI, and I did not understand that. I know only these:\n${abilities}\n\n${connect}`,
  noTool: (name) => `I would need the tool \`${name}\` for that, and it is not offered in this session.`,
  failed: (name, reason) => `The tool \`${name}\` reported an error: ${reason}`,
  refused: (reason) => `The command was not run: ${reason}`,
  files: (count) => `${count} ${count === 1 ? "entry" : "entries"}:`,
  empty: "The folder is empty.",
  more: (count) => `... and ${count} more.`,
  file: (path) => `Text of \`${path}\`:`,
  emptyFile: (path) => `\`${path}\` is empty.`,
  ran: (command, exitCode) => `\`${command}\` ended with exit code ${exitCode}.`,
  noOutput: "It printed nothing.",
  remembered: (fact) => `Saved to memory: ${fact}`,
  found: (count, query) =>
    `${count} earlier ${count === 1 ? "conversation" : "conversations"}${query ? ` about "${query}"` : ""}:`,
  nothingFound: (query) =>
    query ? `No earlier conversation mentions "${query}".` : "There are no earlier conversations yet.",
  skillMade: (name) => `The skill \`${name}\` is saved.`,
  tool: (name) => `\`${name}\` answered:`,
};

export const chineseWords: Words = {
  help: `我是内置的演示程序：不是人工智能，也不联网，只能按固定的说法调用真正的工具。可以试试：\n${abilitiesZh}\n\n${connectZh}`,
  notUnderstood: `我是内置的演示程序，不是人工智能，没有听懂这句话。我只认识这些：\n${abilitiesZh}\n\n${connectZh}`,
  noTool: (name) => `这需要工具 \`${name}\`，但本次会话没有提供它。`,
  failed: (name, reason) => `工具 \`${name}\` 报告了错误：${reason}`,
  refused: (reason) => `命令没有运行：${reason}`,
  files: (count) => `共 ${count} 项：`,
  empty: "文件夹是空的。",
  more: (count) => `……还有 ${count} 项。`,
  file: (path) => `\`${path}\` 的内容：`,
  emptyFile: (path) => `\`${path}\` 是空文件。`,
  ran: (command, exitCode) => `\`${command}\` 已结束，退出码 ${exitCode}。`,
  noOutput: "没有输出。",
  remembered: (fact) => `已记住：${fact}`,
  found: (count, query) => (query ? `以前有 ${count} 次对话提到“${query}”：` : `以前的 ${count} 次对话：`),
  nothingFound: (query) => (query ? `以前的对话里没有提到“${query}”。` : "还没有以前的对话。"),
  skillMade: (name) => `技能 \`${name}\` 已保存。`,
  tool: (name) => `\`${name}\` 的结果：`,
};
