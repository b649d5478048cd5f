// Simplified Chinese of `hermes acp`, and of what it asks and says in editors.
import type { Catalogue } from "./words.ts";

const HELP = {
  "serve editors over the Agent Client Protocol": "通过 Agent Client Protocol 为编辑器服务",
  "serve editors over the Agent Client Protocol (ACP) on stdin and stdout; editors start it themselves":
    "通过标准输入输出上的 Agent Client Protocol（ACP）为编辑器服务；由编辑器启动",
  "check that everything it needs is installed; exit code 0 or 1": "检查所需的一切是否就绪；退出码 0 或 1",
  "connect a model, step by step": "一步一步连接模型",
  "install the library that drives browsers": "安装驱动浏览器的库",
  "install without asking": "不询问直接安装",
} as const;

const SAID = {
  "Editors start this command and talk to it over stdin and stdout. To talk to Hermes yourself: hermes":
    "此命令由编辑器启动，并通过标准输入输出与之通信。要自己与 Hermes 对话：hermes",
  "ACP is ready, but no model is connected. Connect one: hermes acp --setup":
    "ACP 已就绪，但尚未连接模型。连接模型：hermes acp --setup",
  "ACP is ready; model: {model}": "ACP 已就绪；模型：{model}",
  "Not a terminal: add --yes to install the browser library.": "不是终端：加上 --yes 以安装浏览器库。",
  "Install the library that drives browsers (about 14 MB)? [Y/n]": "安装驱动浏览器的库（约 14 MB）？[Y/n]",
  "Nothing was installed.": "没有安装任何东西。",
  "The browser library is installed.": "浏览器库已安装。",
  "The provider that Hermes is set up with": "Hermes 已配置的提供商",
  "Set up Hermes": "设置 Hermes",
  "Connect a model in a terminal": "在终端中连接模型",
} as const;

const ASKED = {
  Default: "默认",
  "Ask before each edit": "每次编辑前询问",
  "Accept edits": "接受编辑",
  "Edit files of this folder and temporary files without asking": "编辑此文件夹中的文件和临时文件时不询问",
  "Don't ask": "不询问",
  "Edit files without asking, except keys and git's own files": "编辑文件时不询问，密钥和 git 自身的文件除外",
  Edits: "编辑",
  Model: "模型",
  "Allow for this session": "本次会话中允许",
  "Always allow": "始终允许",
  "No, and never this command in this session": "不，本次会话中不再运行此命令",
  "Write it": "写入",
  "Trust this folder?": "信任此文件夹？",
  "Trust it": "信任",
  "Look only": "仅查看",
  "Plugins, servers and programs of this folder may load and run when you trust it: {folder}":
    "信任后，此文件夹中的插件、服务器和程序可以加载和运行：{folder}",
  "{count} bytes written": "已写入 {count} 字节",
  "{count} more characters": "还有 {count} 个字符",
  "Close the conversation in the editor.": "请在编辑器中关闭对话。",
} as const;

export const CHINESE_EDITORS: Catalogue = { ...HELP, ...SAID, ...ASKED };
