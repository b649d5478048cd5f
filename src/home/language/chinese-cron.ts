// Simplified Chinese of scheduled jobs: the help of `hermes cron`, and what it and `/cron` answer.
import type { Catalogue } from "./words.ts";

const HELP = {
  "run prompts on a schedule": "按计划运行提示",
  "run prompts on a schedule: every morning, in 20 minutes, every first of the month":
    "按计划运行提示：每天早上、20分钟后、每月1号",
  "list the jobs, when they run next and what came of the last run": "列出任务、下次运行时间和上次结果",
  "also those that are completed or turned off": "也显示已完成或已关闭的任务",
  "schedule a job": "安排一个任务",
  'when: "every weekday at 9", "in 20 minutes", "every 2h", "0 9 * * 1-5", 每天早上8点':
    "时间：每天早上8点、工作日8:30、20分钟后、“every 2h”、“0 9 * * 1-5”",
  "what the agent is to do": "要代理做的事",
  "change a job; an empty text clears a field": "修改任务；空文本清除该字段",
  "another schedule": "新的计划",
  "another prompt": "新的提示",
  "its id or name": "它的 ID 或名称",
  "pause a job": "暂停任务",
  "a note for later": "备注",
  "resume a paused job": "恢复已暂停的任务",
  "remove a job": "删除任务",
  "run a job now, in addition to its schedule": "立即运行任务（不影响其计划）",
  "show who runs the schedule, what comes next and what was skipped": "显示谁在执行计划、下一个任务和被跳过的运行",
  "start every job that is due now, wait for all of them, and end": "启动所有到期的任务，等待它们完成后退出",
  "run the schedule in this terminal until Ctrl+C, without a gateway": "在此终端执行计划直到 Ctrl+C，无需网关",
  "its name": "它的名称",
  "where answers go: local (files only), origin, all, a platform, PLATFORM:CHAT_ID":
    "结果送往：local（仅文件）、origin、all、平台名或 PLATFORM:CHAT_ID",
  "skills that are active in it": "其中启用的技能",
  "its model": "它的模型",
  "its provider": "它的提供商",
  "where its model is asked, instead of the provider's own address": "向哪个地址请求模型，代替提供商自己的地址",
  "end after N runs; 0 = never": "运行 N 次后结束；0 = 不结束",
  "a script in scripts/ of the home that runs before the prompt": "在提示之前运行的脚本，位于主目录的 scripts/",
  "deliver what the script prints; no model is asked": "直接发送脚本的输出；不调用模型",
  "put the last output of other jobs in front of the prompt": "把其他任务的最近输出放在提示之前",
  "nothing but these toolsets": "只用这些工具集",
  "the folder it works in": "它的工作文件夹",
  "the time zone of its schedule, such as Europe/Berlin": "计划的时区，例如 Asia/Shanghai",
  "what one run may cost": "一次运行的最高费用",
  "how many tokens one run may take": "一次运行最多使用的 token 数",
} as const;

const ANSWERS = {
  'Job "{name}" is scheduled.': "任务“{name}”已安排。",
  'Job "{name}" is updated.': "任务“{name}”已更新。",
  'Job "{name}" is paused.': "任务“{name}”已暂停。",
  'Job "{name}" is scheduled again.': "任务“{name}”已恢复。",
  'Job "{name}" is scheduled already.': "任务“{name}”本来就已安排。",
  "There is nothing to change: name a field, such as the schedule or the prompt.":
    "没有要修改的内容：请指定一个字段，例如计划或提示。",
  "{path} could not be read; repair it and move it back to jobs.json, or delete it":
    "{path} 无法读取；请修复后移回 jobs.json，或删除它",
  'Job "{name}" is removed.': "任务“{name}”已删除。",
  'Job "{name}" runs now.': "任务“{name}”正在运行。",
  "id        {id}": "ID        {id}",
  "schedule  {text}": "计划      {text}",
  "delivers  {text}": "送往      {text}",
  "next      {text}": "接下来    {text}",
  "Nothing is running the schedule. Start it: {gateway} or {daemon}":
    "没有程序在执行计划。启动它：{gateway} 或 {daemon}",
  "No jobs. Schedule one: {command}": "没有任务。安排一个：{command}",
  "nothing due": "没有到期的任务",
  "Another process is looking just now.": "另一个进程正在检查。",
  'The gateway runs "{name}" now. See: {command}': "网关正在运行“{name}”。查看：{command}",
  "Running: {who} (process {pid}), last look {at}": "正在执行：{who}（进程 {pid}），上次检查 {at}",
  "Jobs: {enabled} scheduled, {paused} paused, {completed} completed, {error} with errors":
    "任务：{enabled} 个已安排，{paused} 个已暂停，{completed} 个已完成，{error} 个出错",
  "Next: {name} at {at}": "下一个：{name}，{at}",
  "Last: {name}, {at}: {state}": "上一个：{name}，{at}：{state}",
  "Next job": "下一个任务",
  "Last job": "上一个任务",
  "Not run": "未运行",
  "Scheduled jobs": "计划任务",
  "no jobs": "没有任务",
  "no scheduled jobs": "没有计划任务",
  "no job is due: all are paused or over": "没有到期的任务：全部已暂停或已结束",
  "{count} jobs, but nothing is running the schedule": "{count} 个任务，但没有程序在执行计划",
  "1 job, but nothing is running the schedule": "1 个任务，但没有程序在执行计划",
  "{name} was not run: nothing was running the schedule at its time": "{name} 未运行：到时没有程序在执行计划",
  "{name} cannot be scheduled: {text}": "{name} 无法安排：{text}",
  "{name} is paused: {text}": "{name} 已暂停：{text}",
  "{name} was not delivered: {text}": "{name} 的结果未送达：{text}",
  "not run: {text}": "未运行：{text}",
  "Skipped:": "已跳过：",
  'There is no job "{name}". hermes cron list --all shows them.':
    "没有任务“{name}”。hermes cron list --all 可列出任务。",
  'A job needs a schedule, such as "every weekday at 9".': "任务需要计划，例如“每天早上8点”。",
  "A job needs a prompt, a skill or a script: it would have nothing to do.": "任务需要提示、技能或脚本：否则无事可做。",
  "A job without an agent needs a script.": "不使用代理的任务需要脚本。",
  "schedule a job, list and change jobs": "安排任务，列出和修改任务",
} as const;

export const CHINESE_CRON: Catalogue = { ...HELP, ...ANSWERS };
