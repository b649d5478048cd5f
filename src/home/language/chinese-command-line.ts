// Simplified Chinese of what sub-commands print: everyday commands, keys and models, the home. What they check is in chinese-checks.ts.
import type { Catalogue } from "./words.ts";

const COMMON = {
  "{question} Not a terminal; pass -y to confirm.": "{question} 不是终端；用 -y 确认。",
  "Not a terminal; pass -y to confirm.": "不是终端；用 -y 确认。",
  "This command is interactive and needs a terminal. Use {otherwise}.":
    "此命令是交互式的，需要终端。请用 {otherwise}。",
  "Space toggle · Enter save · Esc cancel · type to filter": "空格 切换 · Enter 保存 · Esc 取消 · 输入可筛选",
  "↑↓ move · Enter choose · q quit": "↑↓ 移动 · Enter 选择 · q 退出",
  "↑↓ move · type to filter · Enter choose · Esc cancel": "↑↓ 移动 · 输入可筛选 · Enter 选择 · Esc 取消",
  "↑↓ move · type to filter · Enter choose · Esc skip · Ctrl+C quit":
    "↑↓ 移动 · 输入可筛选 · Enter 选择 · Esc 跳过 · Ctrl+C 退出",
  "type to search · ↑↓ move · Enter resume · Esc clear/quit · q quit":
    "输入可搜索 · ↑↓ 移动 · Enter 继续 · Esc 清除/退出 · q 退出",
  "Must be a whole number.": "必须是整数。",
  "Must be a whole number, 1 or more.": "必须是不小于 1 的整数。",
  "Must be a whole number of days, 1 or more.": "必须是不小于 1 的天数。",
  "Must be a date such as 2026-01-31.": "必须是日期，例如 2026-01-31。",
  "Must be one of {names}.": "必须是以下之一：{names}。",
  "Nothing was deleted.": "没有删除任何内容。",
  "the current folder no longer exists; cd to another one.": "当前目录已不存在；请 cd 到其他目录。",
  "this home has no conversations, but there is a copy: hermes sessions restore {file}":
    "此主目录没有对话，但有一份备份：hermes sessions restore {file}",
  "waiting for another hermes process to release the database ...": "正在等待另一个 hermes 进程释放数据库 ...",
  '{option} needs a value, but "{word}" is an option.': "{option} 需要一个值，但“{word}”是选项。",
  "{option} needs a prompt: hermes {form} PROMPT (- reads it from stdin).":
    "{option} 需要提示：hermes {form} PROMPT（- 表示从标准输入读取）。",
  "the prompt is empty.": "提示为空。",
  "stdin is empty; no prompt to send.": "标准输入为空；没有可发送的提示。",
  'the interactive screen needs a terminal. For scripts use "hermes -z PROMPT" or "hermes chat -q TEXT".':
    "交互界面需要终端。脚本请用“hermes -z PROMPT”或“hermes chat -q TEXT”。",
  "Set up a model now? [Y/n]": "现在设置模型吗？[Y/n]",
  "Trust this folder? [t/L/q]": "信任此目录吗？[t/L/q]",
  "the model returned no answer.": "模型没有返回回答。",
  "the run failed": "运行失败",
  "{command} needs the interactive screen: start hermes and type it there.":
    "{command} 需要交互界面：启动 hermes 后在其中输入。",
  "hermes --resume {id}  resumes this conversation": "hermes --resume {id}  继续本次对话",
  "-w needs a git repository; this folder is not in one.": "-w 需要 git 仓库；此目录不在仓库中。",
  "-w needs a folder you trust: hermes trust add {folder}": "-w 需要受信任的目录：hermes trust add {folder}",
  "The worktree is kept, because {why}: {path} (branch {branch})": "工作树已保留，因为 {why}：{path}（分支 {branch}）",
} as const;

const SETUP = {
  Speech: "语音",
  Chats: "聊天",
  "Skipped: {section}.": "已跳过：{section}。",
  "needs {name}": "需要 {name}",
  "API key for {name} (not shown; Enter = keep {variable}):": "{name} 的 API 密钥（不显示；Enter = 保留 {variable}）：",
  "API key for {name} (not shown):": "{name} 的 API 密钥（不显示）：",
  "Toolsets unchanged.": "工具集没有变化。",
  "✓ Model list updated.": "✓ 模型列表已更新。",
  "hermes model needs a terminal. Without one:": "hermes model 需要终端。没有终端时：",
  'hermes setup: there is no section "{word}". Sections: {names}.': "hermes setup：没有“{word}”部分。可用：{names}。",
  "Restore the default settings in {file}? Keys, conversations and memory are kept. [y/N]":
    "恢复 {file} 的默认设置吗？密钥、对话和记忆会保留。[y/N]",
  "✓ {file} restored to defaults; the old one is saved next to it as config.yaml.bak.*":
    "✓ {file} 已恢复默认；旧文件保存在旁边：config.yaml.bak.*",
  "Next:": "接下来：",
  "start a conversation": "开始对话",
  "connect a model": "连接模型",
  "check everything": "检查全部",
  "No model connected: the built-in demo answers (it is not an AI).": "尚未连接模型：由内置演示程序回答（它不是 AI）。",
  "Set the key of a provider and a model:": "设置提供商的密钥和模型：",
  "or a server on this machine:": "或使用本机上的服务器：",
  "docs/reference/providers.md lists all providers and the names of their keys.":
    "docs/reference/providers.md 列出所有提供商及其密钥名称。",
  "{count} more: type part of the name": "另有 {count} 项：输入名称的一部分",
  "Number or name:": "编号或名称：",
  "There is no {word}.": "没有 {word}。",
} as const;

const SCREEN = {
  sandboxed: "沙盒中",
  "sandboxed, look only": "沙盒中，仅查看",
  "cancelled by the user": "已由用户取消",
  "stopped by the user": "已由用户停止",
  "your own": "自定义",
  "Web search and page text": "网页搜索和网页文本",
  "A real browser": "真正的浏览器",
  "Shell commands and background processes": "Shell 命令和后台进程",
  "Read, write, patch and search files": "读取、写入、修改和搜索文件",
  "Scripts that call tools": "调用工具的脚本",
  "Look at images": "查看图片",
  "Make images": "生成图片",
  Speak: "朗读",
  "Skills the agent uses and writes": "代理使用和编写的技能",
  "Task list": "任务列表",
  "Notes that outlive a session": "跨对话保留的笔记",
  "Search of past conversations": "搜索过去的对话",
  "Questions to the user": "向用户提问",
  "Sub-agents": "子代理",
  "Messages to chats": "向聊天发送消息",
} as const;

const SESSIONS = {
  Title: "标题",
  Preview: "预览",
  "Last Active": "最近活动",
  Src: "来源",
  "just now": "刚刚",
  yesterday: "昨天",
  "{count}m ago": "{count} 分钟前",
  "{count}h ago": "{count} 小时前",
  "{count}d ago": "{count} 天前",
  "Session:": "对话：",
  "Title:": "标题：",
  "Source:": "来源：",
  "Model:": "模型：",
  "Folder:": "目录：",
  "Started:": "开始：",
  "Ended:": "结束：",
  "Messages:": "消息：",
  "Continues:": "承接：",
  "Continued as:": "延续为：",
  "{count} ({calls} tool calls)": "{count}（{calls} 次工具调用）",
  "No sessions found.": "没有找到对话。",
  "Sessions ({count})": "对话（{count}）",
  'No session matches "{text}", or the id prefix is ambiguous. `hermes sessions list` shows them.':
    "没有与“{text}”匹配的对话，或 ID 前缀不唯一。`hermes sessions list` 可列出。",
  'No session "{text}". `hermes sessions list` shows them.': "没有对话“{text}”。`hermes sessions list` 可列出。",
  'Nothing found for "{text}".': "没有找到与“{text}”相关的内容。",
  'Reading "{text}" as "{query}".': "按“{query}”理解“{text}”。",
  "... {count} more in this session": "... 此对话中另有 {count} 条",
  "without: {words}": "不含：{words}",
  "Exported {what} to {file}": "已将 {what} 导出到 {file}",
  "Cannot read {file}: {why}": "无法读取 {file}：{why}",
  "Imported {what}, skipped {count} that already exist.": "已导入 {what}，跳过 {count} 个已存在的。",
  '{id} is now "{title}"': "{id} 现在名为“{title}”",
  "Delete {id} with {count} messages? [y/N]": "删除 {id} 及其 {count} 条消息吗？[y/N]",
  "Deleted {id}.": "已删除 {id}。",
  "{id} is not archived.": "{id} 未归档。",
  "{id} is no longer archived.": "{id} 已取消归档。",
  "No sessions match.": "没有符合条件的对话。",
  "Total sessions: {count}": "对话总数：{count}",
  "Total messages: {count}": "消息总数：{count}",
  "Database size: {size} MB": "数据库大小：{size} MB",
  "A gateway is running (pid {pid}) and would be blocked. Stop it first.":
    "网关正在运行（pid {pid}），会被阻塞。请先停止它。",
  "A gateway is running (pid {pid}) and is using the database. Stop it first.":
    "网关正在运行（pid {pid}）并使用数据库。请先停止它。",
  "A gateway is running (pid {pid}) and is using this home. Stop it first.":
    "网关正在运行（pid {pid}）并使用此主目录。请先停止它。",
  "{before} MB before, {after} MB now.": "之前 {before} MB，现在 {after} MB。",
  "The database is intact.": "数据库完好。",
  "damage: {what}": "损坏：{what}",
  "Rebuilt the search index from the messages; nothing was lost.": "已根据消息重建搜索索引；没有丢失内容。",
  "The database is damaged. `hermes sessions repair` fixes the search index, or rescues the rest into a new file.":
    "数据库已损坏。`hermes sessions repair` 会修复搜索索引，或把其余内容救到新文件中。",
  "Rescued into {file}. {database} was not changed.": "已救到 {file}。{database} 未改动。",
  "To use it: hermes sessions restore {file}": "使用它：hermes sessions restore {file}",
  "To restore them: hermes sessions restore {file}": "恢复：hermes sessions restore {file}",
  "Previous content: {file}": "之前的内容：{file}",
  "Restored {what}.": "已恢复 {what}。",
  "No model calls recorded for this selection.": "此范围内没有模型调用记录。",
  "Nothing in {log} matches.": "{log} 中没有符合的内容。",
  "There are no log files yet.": "还没有日志文件。",
  'There is no log "{name}". The logs are {names}.': "没有日志“{name}”。可用：{names}。",
  '--since takes an age such as 30s, 5m, 2h or 1d, not "{text}".':
    "--since 需要 30s、5m、2h、1d 之类的时长，而不是“{text}”。",
} as const;

const KEYS = {
  "{provider} needs a browser login, which this version does not support. Existing logins in auth.json are used and renewed.":
    "{provider} 需要浏览器登录，此版本不支持。auth.json 中已有的登录会被使用并续期。",
  "Which provider? Name it, for example: openrouter, anthropic, openai-api.":
    "哪个提供商？请写出名称，例如：openrouter、anthropic、openai-api。",
  "No keys saved. Add one: hermes auth add {provider}": "没有保存的密钥。添加：hermes auth add {provider}",
  "no keys saved. Add one: hermes auth add PROVIDER": "没有保存的密钥。添加：hermes auth add PROVIDER",
  '"{text}" is not a URL. Use a URL such as https://host/v1.': "“{text}”不是 URL。请使用 https://host/v1 之类的地址。",
  "Key of {provider} (not shown):": "{provider} 的密钥（不显示）：",
  "that is not a key; nothing was added. A key is one line of letters, digits and symbols.":
    "这不是密钥；没有添加。密钥是一行字母、数字和符号。",
  "this {provider} key is already saved.": "此 {provider} 密钥已保存。",
  "✓ {name} saved for {provider}.": "✓ 已为 {provider} 保存 {name}。",
  "No key is paused.": "没有暂停的密钥。",
  "✓ No {provider} login is stored.": "✓ 没有保存 {provider} 的登录。",
  "No fallback configured. Add one: hermes fallback add PROVIDER MODEL":
    "没有配置后备模型。添加：hermes fallback add PROVIDER MODEL",
  "No fallback configured.": "没有配置后备模型。",
  "{name} is already in the list.": "{name} 已在列表中。",
  "⚠ It cannot be used yet: {why}": "⚠ 暂时无法使用：{why}",
  "✓ Removed {name}": "✓ 已移除 {name}",
  "Remove {name}? [y/N]": "移除 {name} 吗？[y/N]",
  "{file} is broken. Fix it with: hermes config edit": "{file} 已损坏。修复：hermes config edit",
} as const;

const HOME = {
  "✓ hermes now uses profile {name}": "✓ hermes 现在使用配置档 {name}",
  "Active profile: {name}": "当前配置档：{name}",
  "Path: {path}": "路径：{path}",
  "✓ Created profile {name} in {path}": "✓ 已在 {path} 创建配置档 {name}",
  "✓ Command {name} starts it ({path})": "✓ 命令 {name} 可启动它（{path}）",
  "{path} is not on your PATH; add it to use the command.": "{path} 不在 PATH 中；加入后才能使用该命令。",
  "✓ Renamed profile {old} to {name}": "✓ 配置档 {old} 已改名为 {name}",
  "✓ Exported {name} to {file}; secrets were not included": "✓ 已将 {name} 导出到 {file}；不含机密",
  "The default profile cannot be deleted.": "默认配置档不能删除。",
  "This deletes profile {name} with its settings, memory, skills and conversations:":
    "这会删除配置档 {name} 及其设置、记忆、技能和对话：",
  "Type {name} to delete it:": "输入 {name} 以删除：",
  "✓ Deleted profile {name}": "✓ 已删除配置档 {name}",
  "No trusted folders yet.": "还没有受信任的目录。",
  "This folder ({folder}): {state}.": "此目录（{folder}）：{state}。",
  trusted: "已信任",
  "look only": "仅查看",
  "not decided yet": "尚未决定",
  "{folder} is not a folder.": "{folder} 不是目录。",
  "{folder} and all its subfolders are trusted.": "{folder} 及其所有子目录已受信任。",
  "{folder}: decision removed; {what}": "{folder}：决定已删除；{what}",
  "Hermes will ask again.": "Hermes 会再次询问。",
  "The path is empty. Name a folder, or omit it for the current one.": "路径为空。写出目录，或省略以表示当前目录。",
  "This installation is managed by {name}: {how}.": "此安装由 {name} 管理：{how}。",
  "✓ {version} is up to date.": "✓ {version} 是最新版本。",
  "Update available: {version} (installed: {present}).": "有可用更新：{version}（已安装：{present}）。",
  "Run this now? [y/N]": "现在运行吗？[y/N]",
  "✓ Updated. hermes version shows what is installed, CHANGELOG.md what is new.":
    "✓ 已更新。hermes version 显示已安装的版本，CHANGELOG.md 列出新内容。",
  "The clone has changes that are not committed. Commit or stash them first.": "克隆中有未提交的更改。请先提交或暂存。",
  "✓ Backup: {file}": "✓ 备份：{file}",
  "Installed: {path}": "安装位置：{path}",
  "Runs: {what}": "运行：{what}",
  "Home: {path} (profile {name})": "主目录：{path}（配置档 {name}）",
  "Update: not checked yet (hermes update --check)": "更新：尚未检查（hermes update --check）",
  "Update: {state}": "更新：{state}",
  "It contains your keys and conversations. To restore it: hermes import FILE":
    "其中包含你的密钥和对话。恢复：hermes import FILE",
  "⚠ not in the backup: {what}": "⚠ 不在备份中：{what}",
  "--label requires --quick.": "--label 需要 --quick。",
  "--output cannot be used with --quick.": "--output 不能与 --quick 同用。",
  "✓ {what} copied to {file}": "✓ 已将 {what} 复制到 {file}",
  "✓ Restored {what} ({size}) to {path}": "✓ 已将 {what}（{size}）恢复到 {path}",
  "Checkpoints: {state}": "检查点：{state}",
  "No checkpoints yet.": "还没有检查点。",
  "Delete all checkpoints of all folders? [y/N]": "删除所有目录的全部检查点吗？[y/N]",
  "Deleted all checkpoints.": "已删除全部检查点。",
  "No pending approvals.": "没有待批准的请求。",
} as const;

const TOOLS = {
  "Toolsets of which platform?": "哪个平台的工具集？",
  "Toolsets on {platform}": "{platform} 的工具集",
  "hermes tools enable|disable NAME --platform {platform} changes one.":
    "hermes tools enable|disable NAME --platform {platform} 可更改。",
  "Unknown toolset: {name}. Nothing was changed. Valid names: {names}": "未知工具集：{name}。没有更改。可用：{names}",
  "Unknown platform: {name}. Known: {names}": "未知平台：{name}。可用：{names}",
  "The change applies to new conversations.": "更改对新对话生效。",
  "No skills. To add the bundled ones: hermes skills opt-in --sync":
    "没有技能。添加自带技能：hermes skills opt-in --sync",
  "{total}. hermes skills view NAME shows one.": "{total}。hermes skills view NAME 显示其中一个。",
  'There is no skill "{name}". "hermes skills list" shows the skills.':
    "没有技能“{name}”。“hermes skills list”可列出技能。",
  "Saved. The change applies to new conversations.": "已保存。更改对新对话生效。",
  "No changes recorded.": "没有更改记录。",
  "Nothing to undo.": "没有可撤销的内容。",
  "Delete all entries of {file}? [y/N]": "删除 {file} 的所有条目吗？[y/N]",
  "No external memory provider is set. The built-in memory stays on.": "没有设置外部记忆提供方。内置记忆保持开启。",
  "No plugins installed.": "没有安装插件。",
  "Install one with: hermes plugins install FOLDER (copies it to {folder})":
    "安装：hermes plugins install FOLDER（复制到 {folder}）",
  "Plugins run with your permissions. Review it, then run: hermes plugins enable {name}":
    "插件以你的权限运行。请先审查，再运行：hermes plugins enable {name}",
  'there is no plugin "{name}". "hermes plugins list" shows them.': "没有插件“{name}”。“hermes plugins list”可列出。",
  "No MCP servers. Add one: hermes mcp add NAME --command CMD --args ARGS..., or hermes mcp add NAME --url URL":
    "没有 MCP 服务器。添加：hermes mcp add NAME --command CMD --args ARGS...，或 hermes mcp add NAME --url URL",
  "No hooks configured. Define them in config.yaml:": "没有配置钩子。请在 config.yaml 中定义：",
  "No approval to revoke.": "没有可撤回的批准。",
} as const;

export const CHINESE_COMMAND_LINE: Catalogue = {
  ...COMMON,
  ...SETUP,
  ...SCREEN,
  ...SESSIONS,
  ...KEYS,
  ...HOME,
  ...TOOLS,
};
