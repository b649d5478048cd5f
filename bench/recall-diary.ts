// One person's diary over two years: the same things come up again and again, and a question names the time it means. Written before
// anybody saw how it is answered.
import { ANSWERS, type Frame, frame, type Kind } from "./recall-kind.ts";

const DIARY: readonly Frame[] = [
  frame(
    "english",
    "headache, sore throat, back pain, allergy, insomnia, toothache, rash, stomach ache",
    "after the long drive, it went away by itself, took two pills, stayed in bed",
    ["My {o} is back, {v}.", "Bad night, {o} again. | {v}, at least."],
    ["What did I write about my {o} {t}?", "Did I have {o} {t}?", "How did I deal with the {o} {t}?"],
  ),
  frame(
    "english",
    "father, mother, sister, brother, grandson, old teacher, best friend, godson",
    "we argued about money, talked for two hours, the line was bad, only small talk",
    ["Phoned my {o} today, {v}.", "My {o} called out of the blue. | {v}."],
    [
      "What did I talk about with my {o} {t}?",
      "How was the call with my {o} {t}?",
      "When my {o} phoned {t}, what was it about?",
    ],
  ),
  frame(
    "english",
    "swimming, running, cycling, rowing, climbing, skating, hiking, dancing",
    "forty minutes, pulled a muscle, in the rain, new personal best",
    ["Went {o} this morning, {v}.", "Finally some {o} again. | {v}!"],
    ["How did the {o} go {t}?", "Did I go {o} {t}?", "What happened {t} when I went {o}?"],
  ),
  frame(
    "english",
    "cello, watercolours, novel, vegetable patch, model railway, Spanish vocabulary, knitting, bread starter",
    "made real progress, gave up after an hour, ruined it, showed it to a neighbour",
    ["Spent the evening on the {o}, {v}.", "The {o} got all my attention today. | {v}."],
    ["How was it going with the {o} {t}?", "What became of my {o} {t}?", "Was I working on the {o} {t}?"],
  ),
  frame(
    "english",
    "car, fridge, laptop, bike, heating, phone, printer, lawn mower",
    "cost 90 to fix, a fuse, under warranty, still no idea why",
    ["The {o} gave up today, {v}.", "Trouble with the {o} once more. | {v}."],
    ["What was wrong with the {o} {t}?", "How much trouble was the {o} {t}?", "Why did the {o} stop working {t}?"],
  ),
  frame(
    "chinese",
    "头疼, 感冒, 失眠, 牙疼, 过敏, 胃疼, 腰疼",
    "吃了两片药, 睡一觉就好了, 请了半天假, 喝了很多热水",
    ["今天{o}又犯了，{v}。", "{o}，难受一天。|{v}。"],
    ["{t}我{o}是怎么回事？", "{t}{o}的时候我是怎么处理的？", "我{t}是不是{o}过？"],
  ),
  frame(
    "chinese",
    "爸爸, 妈妈, 弟弟, 老同学, 房东, 表姐, 导师",
    "聊了两个小时, 吵了一架, 信号不好, 说起老家的事",
    ["跟{o}通了电话，{v}。", "{o}突然打来电话。|{v}。"],
    ["{t}跟{o}打电话聊了什么？", "{t}{o}找我什么事？", "我{t}和{o}联系过吗？"],
  ),
  frame(
    "chinese",
    "跑步, 爬山, 打球, 骑车, 滑冰, 健身, 跳舞",
    "四十分钟, 扭了脚, 淋了雨, 破了自己的记录",
    ["早上去{o}了，{v}。", "好久没{o}了。|{v}！"],
    ["{t}去{o}怎么样？", "{t}我{o}了多久？", "我{t}去{o}了吗？"],
  ),
  frame(
    "mixed",
    "MacBook, Kindle, Switch, iPad, Windows, Wi-Fi, Bluetooth",
    "重启就好了, 送去修了, 花了九百, 换了新的",
    ["{o}又坏了，{v}。", "折腾了一晚上{o}。|{v}。"],
    ["{t}{o}出了什么毛病？", "{t}我的{o}怎么了？", "What was the trouble with my {o} {t}?"],
  ),
];

const DIARY_CHATTER = [
  "Slept well, nothing special planned.",
  "Tell me something cheerful about {o}, please.",
  "Read a few pages and fell asleep over them.",
  "A neighbour told me at length about {o}, I nodded.",
  "It was a grey day, tea and a blanket.",
  "Shall I write more often, or is once a week enough?",
  "Last week was busier than this one.",
  "In May everything will be easier, I keep saying.",
  "今天没什么特别的。",
  "朋友圈里大家都在说{o}。",
  "上周比这周忙多了。",
  "帮我写一句鼓励自己的话。",
];

export const DIARY_KIND: Kind = {
  people: ["me"],
  frames: DIARY,
  chatter: DIARY_CHATTER,
  answers: ANSWERS,
  personal: false,
  named: false,
  buried: false,
  timed: true,
  sessions: 320,
  messages: [3, 10],
  facts: [1, 2],
};
