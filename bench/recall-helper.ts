// One person and an assistant that answers at length.
import { ANSWERS, type Frame, frame, type Kind } from "./recall-kind.ts";

const HELPER: readonly Frame[] = [
  frame(
    "english",
    "boiler, roof, washing machine, garage door, fence, bathtub, chimney, attic window, dishwasher, doorbell",
    "Mr Hanley came twice, it cost 240, the part is on order, under warranty",
    [
      "The {o} broke again and had to be repaired; {v}.",
      "Need advice: the {o} is leaking. | Update, {v}, so that is settled.",
    ],
    ["Who repaired our {o}?", "What did fixing the {o} cost me?", "When did the {o} break down?"],
  ),
  frame(
    "english",
    "dentist, eye doctor, physiotherapist, dermatologist, tax adviser, notary, hairdresser, vet, mechanic, plumber",
    "Thursday at nine, moved to next month, on Elm Street, too expensive",
    [
      "Please remember my appointment with the {o}: {v}.",
      "I called the {o} about a date. | {v}, that is what they said.",
    ],
    ["Which day did I give you for the {o}?", "At what time am I seeing the {o}?", "What was agreed with the {o}?"],
  ),
  frame(
    "english",
    "invoice script, weather widget, backup job, login page, budget spreadsheet, photo gallery, newsletter template, crawler, chat bot, price tracker",
    "a race in the cache, wrong time zone, a missing index, stale credentials",
    [
      "My {o} keeps failing and I cannot see why. | Found it: {v}.",
      "Let us debug the {o}; the cause was {v} in the end.",
    ],
    ["Why was the {o} failing?", "What turned out to be the bug in my {o}?", "How did we get the {o} to work?"],
  ),
  frame(
    "english",
    "tomatoes, lavender, blueberries, basil, hydrangeas, garlic, strawberries, roses, zucchini, mint",
    "in the raised bed, too much shade, twice a day, before the frost",
    ["I planted {o} on the balcony, {v}.", "The {o} look sad this year. | {v}, maybe that is why."],
    ["Where did I plant the {o}?", "What is the matter with my {o}?", "How often do the {o} need care?"],
  ),
  frame(
    "english",
    "wedding, retirement party, housewarming, graduation, baby shower, school reunion, farewell dinner, christening, anniversary, picnic",
    "forty guests, in the old barn, a blue dress, on the 14th",
    ["Help me plan the {o}: {v}.", "For the {o} I settled on {v}. | Write me a short invitation, please."],
    [
      "What had I planned for the {o}?",
      "How many people are invited to the {o}?",
      "What did I decide about the {o} venue?",
    ],
  ),
  frame(
    "english",
    "landlord, insurance company, bank, energy provider, school board, gym, phone company, city council, airline desk, library",
    "they refunded 80, a rude letter, until March, case 5512",
    ["I wrote a complaint to the {o}; {v}.", "The {o} answered my complaint. | {v}, finally."],
    [
      "What came of my complaint to the {o}?",
      "How did the {o} reply when I complained?",
      "What was I complaining to the {o} about?",
    ],
  ),
  frame(
    "chinese",
    "热水器, 空调, 洗碗机, 门锁, 马桶, 冰箱, 路由器, 油烟机",
    "师傅姓刘, 修了两百块, 换了主板, 还在保修期",
    ["家里的{o}坏了，找人来修，{v}。", "{o}漏水怎么办？|后来解决了，{v}。"],
    ["上次修{o}花了多少钱？", "{o}是谁来修好的？", "我家{o}坏掉是什么原因？"],
  ),
  frame(
    "chinese",
    "牙医, 眼科, 律师, 中介, 会计师, 理发店, 驾校, 装修公司",
    "周四上午九点, 改到下个月, 在解放路, 收费太贵",
    ["帮我记一下和{o}的预约：{v}。", "我给{o}打过电话了。|{v}。"],
    ["{o}预约在什么时候？", "跟{o}约的是几点？", "{o}那边怎么说的？"],
  ),
  frame(
    "chinese",
    "婚礼, 生日会, 年会, 毕业典礼, 满月酒, 同学聚会, 搬家, 露营",
    "四十个人, 在老仓库, 穿蓝裙子, 预算两万",
    ["帮我策划{o}，{v}。", "{o}的事定下来了：{v}。|再帮我写个通知吧。"],
    ["{o}是怎么安排的？", "{o}打算请多少人？", "关于{o}我最后决定了什么？"],
  ),
  frame(
    "chinese",
    "番茄, 薰衣草, 蓝莓, 绣球, 大蒜, 草莓, 月季, 薄荷",
    "阳台东边, 水浇多了, 一天两次, 霜冻之前",
    ["我在阳台种了{o}，{v}。", "今年{o}长得不好。|{v}，可能是这个原因。"],
    ["我的{o}种在什么地方？", "{o}长不好是因为什么？", "照顾{o}要注意什么？"],
  ),
  frame(
    "mixed",
    "iPhone, MacBook, Kindle, Switch, iPad, AirPods, ThinkPad, GoPro",
    "电池换了600块, 屏幕碎了, 序列号在盒子上, 借给表弟了",
    ["我的{o}坏了，{v}。", "{o}的事情记一下：{v}。"],
    ["我的{o}出了什么毛病？", "{o}修了多少钱？", "What happened to my {o}?"],
  ),
  frame(
    "mixed",
    "gitlab, jenkins, mysql, rabbitmq, elasticsearch, flask, vue, celery",
    "内存不够, 证书过期, 编码不对, 依赖冲突",
    ["线上{o}报错，原因是{v}。", "帮我看看{o}为什么起不来。|查到了，{v}。"],
    ["{o}报错的原因查到了吗？", "{o}起不来是怎么解决的？", "Why did {o} crash in production?"],
  ),
];

const HELPER_CHATTER = [
  "Can you summarise this article for me in three points?",
  "Translate this paragraph into German, please, and keep the tone.",
  "What is a polite way to say no to a meeting?",
  "Give me five ideas for dinner with what is left in the fridge.",
  "Write a haiku about the {o}, just for fun.",
  "Is there anything new about {o} that I should know?",
  "Let us go on where we stopped, the list was fine.",
  "Make this email shorter and friendlier.",
  "帮我把这段话翻译成英文。",
  "写一个周报，内容简单一点。",
  "推荐几部适合周末看的电影。",
  "顺便问一下，{o}一般要注意什么？",
  "把刚才的表格整理成清单。",
];

export const HELPER_KIND: Kind = {
  people: "me".split(", "),
  frames: HELPER,
  chatter: HELPER_CHATTER,
  answers: ANSWERS,
  personal: false,
  named: false,
  buried: false,
  timed: false,
  sessions: 160,
  messages: [5, 14],
  facts: [1, 2],
};
