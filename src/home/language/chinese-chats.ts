// Simplified Chinese of what people read in chats, and of what the commands around chats print.
import type { Catalogue } from "./words.ts";

const COMMANDS = {
  "this command works in chats only": "此命令只能在聊天中使用",
  "say hello": "打个招呼",
  "approve what the agent asked for": "批准智能体请求的操作",
  "refuse what the agent asked for, with a reason": "拒绝智能体请求的操作，可附理由",
  "show who you are here and what you may do": "显示你在这里的身份和权限",
  "make this chat the home channel": "将此聊天设为主频道",
  "restart the gateway when running turns are done": "正在运行的轮次完成后重启网关",
  "list, pause and resume chat platforms": "列出、暂停和恢复聊天平台",
  "choose which answers are read aloud in this chat": "选择此聊天中哪些回答朗读",
  "/voice takes on (answers to voice messages), tts (every answer), off or status.":
    "/voice 接受 on（回答语音消息时）、tts（每个回答）、off 或 status。",
  "Voice messages are answered aloud here.": "此聊天中语音消息会以语音回答。",
  "Every answer is read aloud here.": "此聊天中每个回答都会朗读。",
  "Answers are not read aloud here.": "此聊天中不朗读回答。",
  "list commands and skills, page by page": "分页列出命令和技能",
  "Nothing is waiting for an approval here.": "这里没有等待批准的操作。",
  "Approved.": "已批准。",
  "Approved ({count}).": "已批准（{count} 项）。",
  "Denied.": "已拒绝。",
  "Denied ({count}).": "已拒绝（{count} 项）。",
  "/approve takes session or always, and all: /approve session":
    "/approve 只接受 session 或 always，以及 all：/approve session",
  "You are at the terminal of profile {name}: you may do everything.": "你在配置档 {name} 的终端前：可以做任何操作。",
  "/platform takes list, pause NAME or resume NAME.": "/platform 只接受 list、pause NAME 或 resume NAME。",
  "/commands takes a page from 1 to {count}.": "/commands 接受 1 到 {count} 的页码。",
  "/commands {page} shows more.": "/commands {page} 显示更多。",
  "Page {page} of {count}": "第 {page} 页，共 {count} 页",
  "You may not run /{name} here. /whoami shows what you may do.":
    "你不能在这里运行 /{name}。/whoami 显示你可以做什么。",
  "You are {name} on {platform}: {role}.": "你在 {platform} 上是 {name}：{role}。",
  "You may run: {commands}": "你可以运行：{commands}",
  "New conversation. What can I do for you?": "新的对话。我能为你做什么？",
  "Resumed {title}.": "已恢复 {title}。",
  "A chat has no end; /new begins another conversation.": "聊天不会结束；/new 开始另一个对话。",
  "1 waiting message dropped.": "已丢弃 1 条等待的消息。",
  "{count} waiting messages dropped.": "已丢弃 {count} 条等待的消息。",
  "Restarting when running turns are done.": "正在运行的轮次完成后重启。",
  "This chat is the home channel now.": "此聊天现在是主频道。",
  "There is no platform {name} here. /platform list shows them.": "这里没有平台 {name}。/platform list 可列出。",
} as const;

const NOTICES = {
  "Stopping to read your new message.": "停下来阅读你的新消息。",
  "Got it. I will answer when this turn is done.": "收到。本轮完成后回答。",
  "Got it. Sub-agents are working; I will answer when this turn is done.": "收到。子智能体正在工作；本轮完成后回答。",
  "Queued. It gets a turn of its own when this one is done.": "已排队。本轮完成后会单独处理。",
  "Got it. I will take it into account.": "收到。我会考虑这一点。",
  "I am about to restart. Your message is saved and will be answered afterwards.":
    "我即将重启。你的消息已保存，稍后回答。",
  "I am about to go offline. Your message is saved and will be answered when I am back.":
    "我即将离线。你的消息已保存，恢复后回答。",
  "Other chats come first; you are number {place} in line.": "先回答其他聊天；你排在第 {place} 位。",
  "You can choose what a message does while I work: set display.busy_input_mode to interrupt, queue or steer. /stop ends the turn, /queue and /steer work in every mode.":
    "你可以选择在我工作时消息的作用：将 display.busy_input_mode 设为 interrupt、queue 或 steer。/stop 结束本轮，/queue 和 /steer 在任何模式下都可用。",
  "This is a new conversation: the last one was idle for too long. /resume reopens it.":
    "这是新的对话：上一个对话闲置过久。/resume 可重新打开。",
  "This is a new conversation: one starts every day. /resume reopens the last one.":
    "这是新的对话：每天开始一个。/resume 可重新打开上一个。",
  "This is a new conversation: the last one kept failing. /resume reopens it.":
    "这是新的对话：上一个对话一再失败。/resume 可重新打开。",
  'I was interrupted while working on "{text}". Write "continue" to resume it.':
    "我在处理“{text}”时被中断。发送 continue 即可继续。",
  "state.db holds {count} answers that Python Hermes had to deliver (delivery_obligations); they are not taken over: its own gateway sends what is still open":
    "state.db 中有 {count} 条 Python Hermes 尚需送达的回答（delivery_obligations）；它们不会被接管：未送达的由它自己的网关发送",
  "I failed three times to start answering this message: {why}. {next}": "三次都未能开始回答此消息：{why}。{next}",
  "Your next message starts a new conversation; /resume reopens this one.":
    "你的下一条消息会开始新的对话；/resume 可重新打开此对话。",
  "I tried to answer this message three times and failed. Your next message starts a new conversation; /resume reopens this one.":
    "我尝试了三次都没能回答这条消息。你的下一条消息将开始新的对话；/resume 可重新打开这一个。",
  "The turn was stopped because nothing happened for too long. Write again to continue.":
    "本轮因长时间没有进展而停止。再发一条消息即可继续。",
  "Nothing has happened for {count} minutes. /stop ends the turn.": "已有 {count} 分钟没有进展。/stop 结束本轮。",
  "The conversation nearly fills the model's window. /compress shortens it, /new begins another.":
    "对话几乎占满模型的上下文窗口。/compress 缩短它，/new 开始另一个。",
  "The conversation could not be shortened: {why}. Nothing was lost.": "对话未能缩短：{why}。没有丢失任何内容。",
  "The model gave no answer. Ask again, or rephrase it.": "模型没有给出回答。请再问一次，或换一种说法。",
  "The model provider refused this request because of its rules. Rephrase it.":
    "模型提供商因其规则拒绝了此请求。请换一种说法。",
  "The model provider is limiting requests right now. Try again in a few minutes.":
    "模型提供商目前限制请求。请几分钟后再试。",
  "The model provider refused the key. The owner of this bot has to check it.":
    "模型提供商拒绝了密钥。需要此机器人的所有者检查。",
  "Your message was removed from the conversation; send it again after /compress or /new.":
    "你的消息已从对话中移除；请在 /compress 或 /new 之后重新发送。",
  "The account of this bot at the model provider has no credit left. The owner has to add some.":
    "此机器人在模型提供商的账户余额已用完。需要所有者充值。",
  "The spending limit of this bot is reached. The owner can raise it.": "此机器人已达到花费上限。所有者可以提高它。",
  "The model provider does not take requests the way this bot is set up. The owner has to check its settings.":
    "模型提供商不接受此机器人当前设置下的请求。需要所有者检查设置。",
  "The conversation is too long for the model. Use /compress to shorten it, or /new to start over.":
    "对话对模型来说太长。用 /compress 缩短它，或用 /new 重新开始。",
  "An image in the conversation is too large for the model. Send a smaller one, or use /new.":
    "对话中的图片对模型来说太大。请发一张更小的，或用 /new。",
  "The model could not answer because of an error at the provider. Try again in a moment.":
    "由于提供商出错，模型无法回答。请稍后再试。",
  "(the whole answer is in the file below)": "（完整回答见下面的文件）",
  "A message could not be delivered: {why}": "有一条消息无法送达：{why}",
  "⚙️ Background process {id} ended (exit code {code}): {command}": "⚙️ 后台进程 {id} 已结束（退出码 {code}）：{command}",
  "I am back.": "我回来了。",
  "The gateway stops.": "网关将停止。",
  "The gateway restarts.": "网关将重启。",
  "The gateway restarts. This turn finishes first if there is time; otherwise it continues afterwards.":
    "网关将重启。时间允许时先完成本轮；否则之后继续。",
  "The gateway stops. This turn finishes first if there is time; otherwise it continues afterwards.":
    "网关将停止。时间允许时先完成本轮；否则之后继续。",
  "This question is closed.": "此问题已关闭。",
  "You may name several.": "可以选择多个。",
  "You may not answer this.": "你不能回答这个问题。",
  "This choice was not offered.": "没有这个选项。",
  "I do not know you yet. The owner of this bot can approve you:": "我还不认识你。此机器人的所有者可以批准你：",
  "Pairing code: {code}": "配对代码：{code}",
  "You are in. Write to me any time.": "你已获准。随时可以给我发消息。",
} as const;

const COMMAND_LINE = {
  "The gateway is already running (process {pid}).": "网关已在运行（进程 {pid}）。",
  "✓ The gateway is running (process {pid}): {platforms}": "✓ 网关正在运行（进程 {pid}）：{platforms}",
  "The gateway did not start.": "网关未能启动。",
  "The gateway is still starting. See: {command}, {file}": "网关仍在启动。查看：{command}、{file}",
  Gateway: "网关",
  Inbox: "收件箱",
  Outbox: "发件箱",
  Platforms: "平台",
  Service: "服务",
  stopped: "已停止",
  "none is set up: hermes gateway setup": "尚未设置：hermes gateway setup",
  "{count} waiting": "{count} 条等待中",
  "No gateway is running.": "没有正在运行的网关。",
  "The gateway is not running.": "网关没有运行。",
  "Stopping the {which}; running turns get up to {seconds} s.": "正在停止 {which}；运行中的轮次最多还有 {seconds} 秒。",
  "✓ Stopped the {which}": "✓ 已停止 {which}",
  "✓ Killed the {which}: it did not end in time": "✓ 已强制结束 {which}：它没有按时结束",
  "✓ Wrote {file}": "✓ 已写入 {file}",
  "✓ Enabled {service}": "✓ 已启用 {service}",
  "Start it now: {command}": "立即启动：{command}",
  "To keep it running while you are logged out: loginctl enable-linger":
    "如需在退出登录后继续运行：loginctl enable-linger",
  "No service is installed.": "没有安装服务。",
  "Start it: {command}, or in this terminal: {other}": "启动：{command}，或在此终端：{other}",
  "Which platform do you want to connect?": "你想连接哪个平台？",
  "✓ Saved {names} in {file}": "✓ 已将 {names} 存入 {file}",
  "{name} is needed. Ctrl+C cancels.": "需要 {name}。Ctrl+C 取消。",
  "{platform} knows the bot: {name}": "{platform} 认得此机器人：{name}",
  "{platform} could not be asked: {why}. The gateway tries it again.": "无法询问 {platform}：{why}。网关会再次尝试。",
  "A token has no spaces; copy it again.": "令牌中没有空格；请重新复制。",
  "It contains control characters; copy it again.": "其中含有控制字符；请重新复制。",
  "Only the value, without {name}=.": "只需值，不要写 {name}=。",
  "{platform} is set up. Next:": "{platform} 已设置。接下来：",
  "Then write to the bot.": "然后给机器人发消息。",
  "It answers with a pairing code. Approve it: {command}": "它会回复配对代码。批准：{command}",
  "Or name who may write: {command}": "或指定谁可以发消息：{command}",
  "Set these, then run this command again:": "请设置以下各项，然后再次运行此命令：",
  "No pending requests, nobody approved. Strangers who write to the bot get a pairing code.":
    "没有等待的请求，也没有已获准的人。给机器人发消息的陌生人会收到配对代码。",
  "Pending (approve one: {command}):": "等待中（批准：{command}）：",
  "No pending requests.": "没有等待的请求。",
  "Too many wrong codes: approvals for {platform} are locked until {time}.":
    "错误代码过多：{platform} 的批准已锁定至 {time}。",
  'The code is wrong or expired. "{command}" lists pending requests.': "代码错误或已过期。“{command}” 列出等待的请求。",
  '{user} is not approved on {platform}. "{command}" shows who is.':
    "{user} 未在 {platform} 上获准。“{command}” 显示谁已获准。",
  "✓ {name} may talk to the agent on {platform} and is notified.":
    "✓ {name} 可以在 {platform} 上与智能体对话，已通知对方。",
  "✓ {name} may talk to the agent on {platform}.": "✓ {name} 可以在 {platform} 上与智能体对话。",
  "✓ {name} may no longer talk to the agent on {platform}.": "✓ {name} 不能再在 {platform} 上与智能体对话。",
  "hermes send needs a target: -t PLATFORM or -t PLATFORM:CHAT_ID.":
    "hermes send 需要目标：-t PLATFORM 或 -t PLATFORM:CHAT_ID。",
  "Queued for {target}; the gateway sends it as soon as it can.": "已为 {target} 排队；网关会尽快发送。",
  "Sent to {target}.": "已发送到 {target}。",
  "No chats are known yet. They are listed once somebody has written, or a home channel is set.":
    "还不知道任何聊天。有人发来消息或设置主频道后才会列出。",
} as const;

const WEBHOOKS = {
  "port {port} on {host} is taken; choose another with {setting}":
    "{host} 的端口 {port} 已被占用；请用 {setting} 换一个",
  "cannot listen on {address} ({setting}): {why}": "无法监听 {address}（{setting}）：{why}",
  "serve the agent over an OpenAI-compatible HTTP API": "通过兼容 OpenAI 的 HTTP API 提供智能体",
  "serve the agent over an OpenAI-compatible HTTP API until Ctrl+C, without a gateway":
    "通过兼容 OpenAI 的 HTTP API 提供智能体，直到按 Ctrl+C，不需要网关",
  "address to listen on (API_SERVER_HOST, 127.0.0.1)": "监听的地址（API_SERVER_HOST，127.0.0.1）",
  "port to listen on; 0 = any free one (API_SERVER_PORT, 8642)":
    "监听的端口；0 = 任意空闲端口（API_SERVER_PORT，8642）",
  "let other programs start a turn: add, list and test webhook routes":
    "让其他程序发起一轮：添加、列出和测试 webhook 路由",
  "let other programs start a turn: each route is a URL that they call":
    "让其他程序发起一轮：每个路由是它们调用的一个地址",
  "add or replace a route; a running gateway uses it at once": "添加路由，或替换已订阅的路由；运行中的网关立即采用",
  "the name of the route: the last part of its URL": "路由名称，即其地址的末尾",
  "the message for the agent; {a.b} inserts a field of the payload, {__raw__} all of it":
    "给智能体的消息；{a.b} 是载荷中的一个位置，{__raw__} 是全部载荷",
  "events to react to, separated by commas; default all": "要响应的事件，用逗号分隔；默认全部",
  "skills to load, separated by commas": "要加载的技能，用逗号分隔",
  "where the answer goes: log (default), github_comment, or as in hermes send":
    "回答送往何处：log（默认）、github_comment，或与 hermes send 相同的目标",
  "the chat on that platform; {a.b} inserts a field of the payload": "该平台上的聊天；可以是载荷中的一个位置",
  "send the filled-in prompt as it is, without the agent": "直接发送填好的提示；不用智能体，不用模型",
  "the secret that deliveries are signed with; default: a new one": "用于给投递签名的密钥；默认新建一个",
  "a note for yourself": "给自己的备注",
  "list the routes, those in config.yaml and the subscribed ones": "列出设置中的路由和已订阅的路由",
  "remove a subscribed route": "删除已订阅的路由",
  "the name from the list": "列表中的名称",
  "send a signed delivery to a route; exit code 0 accepted, 1 not":
    "向路由发送带签名的投递；退出码 0 表示接受，1 表示未接受",
  "the JSON object to send, or @FILE": "发送的内容：JSON 对象，或 @FILE",
  "✓ The route {name} was added.": "✓ 已添加路由 {name}。",
  "✓ The route {name} was replaced.": "✓ 已替换路由 {name}。",
  "✓ The route {name} was removed.": "✓ 已删除路由 {name}。",
  "Address: {url}": "地址：{url}",
  "Secret: {secret}": "密钥：{secret}",
  "It is shown only now; enter both where the sender asks for them.":
    "密钥只在此时显示；请把两者填入发送方要求的位置。",
  "Try it: hermes webhook test {name}": "试一试：hermes webhook test {name}",
  "Webhooks are off. Enable them: hermes config set WEBHOOK_ENABLED true, then hermes gateway restart":
    "Webhook 未启用。启用：hermes config set WEBHOOK_ENABLED true，然后 hermes gateway restart",
  "The gateway takes no webhooks now: hermes gateway status says why.":
    "网关目前不接收 webhook：hermes gateway status 会说明原因。",
  "No gateway is running. Start it: hermes gateway start": "没有网关在运行。启动：hermes gateway start",
  "No routes. Add one: hermes webhook subscribe NAME --prompt TEXT":
    "没有路由。添加：hermes webhook subscribe NAME --prompt TEXT",
  "The route {name} is in config.yaml: hermes config unset {key}":
    "路由 {name} 在 config.yaml 中：hermes config unset {key}",
  "The route does not want this event: its events or filters leave it out. Send another one with --payload.":
    "此路由不需要该事件：它的 events 或 filters 将其排除。用 --payload 发送其他事件。",
  "The answer goes to: {target}": "回答送往：{target}",
  "--payload takes an object in JSON, or @FILE with one.": "--payload 需要 JSON 对象，或含有它的 @FILE。",
  "{url} could not be called: {reason}.": "无法调用 {url}：{reason}。",
} as const;

export const CHINESE_CHATS: Catalogue = { ...COMMANDS, ...NOTICES, ...COMMAND_LINE, ...WEBHOOKS };
