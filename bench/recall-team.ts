// One person tells about colleagues, in few words or many.
import { ANSWERS, type Frame, frame, type Kind } from "./recall-kind.ts";

const TEAM: readonly Frame[] = [
  frame(
    "english",
    "onboarding guide, quarterly forecast, privacy policy, style guide, vendor contract, risk register, travel budget, press release",
    "by Friday noon, in two languages, with legal, from scratch",
    ["{p} promised to rewrite the {o} {v}.", "The {o} is now with {p}, who is rewriting it {v}."],
    [
      "Who took over rewriting the {o}, was it {p}?",
      "When will {p} have rewritten the {o}?",
      "What did {p} promise about the {o}?",
    ],
  ),
  frame(
    "english",
    "payment gateway, search cluster, mobile app, data warehouse, mail server, staging environment, billing service, login flow",
    "for forty minutes, after the upgrade, during lunch, twice in a row",
    ["The {o} went down {v} and {p} was on call.", "{p} handled the outage of the {o}, it lasted {v}."],
    [
      "How long was the {o} outage that {p} handled?",
      "What happened to the {o} when {p} was on call?",
      "Was {p} dealing with a {o} failure?",
    ],
  ),
  frame(
    "english",
    "conference, workshop, trade fair, hackathon, webinar, site visit, training, retreat",
    "in Rotterdam, on the 9th, with two students, instead of Karim",
    ["{p} is speaking at the {o} {v}.", "I registered {p} as a speaker for the {o}, {v}."],
    ["Where does {p} speak at the {o}?", "Did I register {p} for the {o}?", "What is {p}'s role in the {o}?"],
  ),
  frame(
    "english",
    "logo, pricing page, packaging, newsletter, demo video, brochure, floor plan, survey",
    "too dark, not legible, much better, a bit childish",
    ["{p} thought that the new {o} looks {v}.", "Feedback of {p} on the {o} draft: {v}."],
    [
      "What was {p}'s opinion of the {o}?",
      "How did {p} like the {o} draft?",
      "Which feedback did {p} give about the {o}?",
    ],
  ),
  frame(
    "english",
    "parental leave, sabbatical, night shifts, part-time work, relocation, knee operation, jury duty, language course",
    "until October, from next month, half the week, for six weeks",
    ["{p} will be away for {o} {v}.", "Mark in the calendar: {o} of {p}, {v}."],
    [
      "Until when is {p} away because of {o}?",
      "When does the {o} of {p} start?",
      "Why is {p} absent, something with {o}?",
    ],
  ),
  frame(
    "chinese",
    "用户手册, 预算表, 合同, 招聘计划, 宣传册, 测试报告",
    "周五之前, 重新写, 和法务一起, 分两个版本",
    ["{p}答应负责{o}，{v}完成。", "{o}交给{p}了，{v}。"],
    ["{o}是{p}负责的吗？", "{p}什么时候能完成{o}？", "{p}的{o}进展如何？"],
  ),
  frame(
    "chinese",
    "支付系统, 数据库, 邮件服务器, 仓库系统, 登录页面, 打印机",
    "四十分钟, 升级之后, 午休时间, 连续两次",
    ["{o}出了故障，{v}，{p}值班处理的。", "{p}处理了{o}的故障，{v}。"],
    ["{p}值班的时候{o}怎么了？", "{p}处理{o}故障用了多久？", "{o}那次故障是{p}解决的吗？"],
  ),
  frame(
    "chinese",
    "展会, 培训, 研讨会, 客户拜访, 团建, 面试",
    "在深圳, 九号, 带两个实习生, 代替经理",
    ["{p}要去参加{o}，{v}。", "给{p}报名了{o}，{v}。"],
    ["{p}参加{o}在什么地方？", "我给{p}报名{o}了吗？", "{p}的{o}是哪天？"],
  ),
  frame(
    "mixed",
    "Salesforce, Jira, Tableau, Slack, Zoom, SAP, Confluence, GitHub",
    "权限不够, 账号过期, 流程太复杂, 数据对不上",
    ["{p}反馈{o}有问题：{v}。", "帮{p}申请{o}的权限，原因是{v}。"],
    ["{p}的{o}出了什么问题？", "为什么给{p}申请{o}？", "What trouble did {p} have with {o}?"],
  ),
];

const TEAM_CHATTER = [
  "The meeting ran late again and nobody took notes.",
  "I need a short summary for the board, half a page at most.",
  "Somebody asked about the {o} in the corridor, nothing urgent.",
  "{p} says hello and asks for the slides.",
  "Please keep the tone friendly but firm.",
  "We moved desks on Monday, everything is still in boxes.",
  "The {o} comes up in every call lately.",
  "会议改到下午了，记得提醒我。",
  "老板问起{o}，暂时不用管。",
  "{p}让我转达一下，他今天不在。",
  "这个月的报销还没交。",
];

export const TEAM_KIND: Kind = {
  people: "Sofia, Bjorn, Amara, Kenji, Lucia, Dmitri, Hannah, Omar, 刘洋, 赵敏, 孙浩, 周婷".split(", "),
  frames: TEAM,
  chatter: TEAM_CHATTER,
  answers: ANSWERS,
  personal: true,
  named: false,
  buried: false,
  timed: false,
  sessions: 260,
  messages: [2, 30],
  facts: [1, 3],
};
