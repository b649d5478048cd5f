// The owner of a workshop reports on customers and suppliers, facts inside long messages. Written before anybody saw how it is answered.
import { ANSWERS, type Frame, frame, type Kind } from "./recall-kind.ts";

const SHOP: readonly Frame[] = [
  frame(
    "english",
    "walnut table, oak shelves, garden bench, kitchen counter, cradle, staircase, wardrobe, picture frames, bar stools, bookcase",
    "800 up front, in three instalments, only after delivery, by bank transfer",
    ["{p} ordered a {o} from us and pays {v}.", "New order: {p} wants the {o}, payment {v}."],
    ["How is {p} paying for the {o}?", "What are the payment terms for the {o} of {p}?", "Has {p} ordered a {o}?"],
  ),
  frame(
    "english",
    "hinges, varnish, plywood, sandpaper, brass handles, glue, screws, veneer, dowels, linseed oil",
    "two weeks late, in the wrong size, with a discount, in damaged boxes",
    ["The {o} from {p} came {v}.", "{p} delivered our {o} {v}, I signed for it."],
    [
      "In what state did the {o} arrive from {p}?",
      "Was there a problem with the delivery of {o} by {p}?",
      "When {p} supplied {o}, what was wrong?",
    ],
  ),
  frame(
    "english",
    "scratches, wobbling leg, stuck drawer, cracked panel, bad smell, uneven colour, loose joint, missing key, squeaking door, water stains",
    "a full refund, a replacement, a free visit, nothing but an apology",
    ["{p} complained about a {o}, and I offered {v}.", "Complaint by {p} because of the {o}; we settled on {v}."],
    [
      "What did we offer {p} for the {o}?",
      "How was the {o} complaint settled with {p}?",
      "Did {p} ever complain of a {o}?",
    ],
  ),
  frame(
    "english",
    "band saw, planer, drill press, lathe, dust extractor, compressor, belt sander, router table, van, forklift",
    "for a week, against a deposit, without asking, until the fair is over",
    ["I lent the {o} to {p} {v}.", "{p} borrowed our {o} {v}."],
    [
      "Who has the {o}, did I lend it to {p}?",
      "For how long did {p} borrow the {o}?",
      "On what terms is {p} using my {o}?",
    ],
  ),
  frame(
    "english",
    "rent, insurance, electricity, website, bookkeeping, advertising, cleaning, parking, phone line, waste disposal",
    "from next quarter, by twelve percent, after a long call, against my will",
    ["{p} raised the price of the {o} {v}.", "We pay {p} more for {o} now, {v}."],
    [
      "By how much did {p} raise the {o}?",
      "Why do we pay {p} more for {o}?",
      "When did the {o} price of {p} increase?",
    ],
  ),
  frame(
    "english",
    "apprenticeship, night school, welding exam, forklift licence, first aid course, trial week, internship, driving test",
    "with distinction, at the second attempt, in Leeds, next to the job",
    ["{p} passed the {o} {v}.", "Good news about {p}: the {o} is done, {v}."],
    ["How did {p} do in the {o}?", "Did {p} pass the {o}?", "Where was the {o} that {p} took?"],
  ),
  frame(
    "chinese",
    "衣柜, 书架, 餐桌, 沙发, 茶几, 床头柜, 屏风, 鞋柜",
    "先付一半, 货到付款, 分三期, 微信转账",
    ["{p}订了一个{o}，{v}。", "{p}要做{o}，付款方式是{v}。"],
    ["{p}订的{o}怎么付款？", "{p}买{o}付了钱没有？", "{o}是{p}订的吗？"],
  ),
  frame(
    "chinese",
    "油漆, 木板, 螺丝, 把手, 胶水, 玻璃, 铰链, 海绵",
    "晚了两周, 尺寸不对, 打了折, 箱子破了",
    ["{p}送来的{o}{v}。", "{o}是{p}供的货，{v}，我签收了。"],
    ["{p}送的{o}有什么问题？", "{p}供货的{o}怎么样？", "那批{o}是{p}送来的吗？"],
  ),
  frame(
    "chinese",
    "划痕, 异味, 色差, 抽屉卡住, 门关不上, 桌腿不稳",
    "全额退款, 换新的, 上门维修, 道歉",
    ["{p}投诉{o}，我答应{v}。", "因为{o}的事，{p}很生气，最后{v}。"],
    ["{p}投诉{o}是怎么处理的？", "{o}的投诉我答应{p}什么了？", "{p}为什么不满意，是{o}吗？"],
  ),
  frame(
    "mixed",
    "Shopify, AutoCAD, PayPal, WhatsApp, SketchUp, QuickBooks, Instagram, TikTok",
    "账号被封, 汇率太差, 图纸打不开, 客户收不到",
    ["{p}说{o}用不了：{v}。", "跟{p}改用{o}了，因为{v}。"],
    ["{p}用{o}遇到什么麻烦？", "为什么跟{p}用{o}？", "What was wrong with {o} when {p} used it?"],
  ),
];

const SHOP_CHATTER = [
  "It rained through the roof again and we put buckets under it.",
  "Please turn my notes into a tidy list, oldest first.",
  "Everybody talks about {o} these days, I have no opinion.",
  "{p} waved from across the street, we did not speak.",
  "The radio was on all day and nobody could agree on a station.",
  "I should clean up the yard before the inspector comes.",
  "Remind me to look up what {o} cost elsewhere.",
  "{p} sent a postcard, very kind.",
  "Lunch was cold soup, the good kind.",
  "今天太忙了，连水都没喝。",
  "隔壁店也在卖{o}，生意一般。",
  "{p}路过打了个招呼。",
  "帮我把这些记下来，按日期排。",
];

export const SHOP_KIND: Kind = {
  people:
    "Whitlock, Okafor, Lindqvist, Moreau, Petrov, Castellano, Nakamura, Brennan, 老周, 吴师傅, 郑老板, 林姐".split(
      ", ",
    ),
  frames: SHOP,
  chatter: SHOP_CHATTER,
  answers: ANSWERS,
  personal: true,
  named: false,
  buried: true,
  timed: false,
  sessions: 240,
  messages: [4, 20],
  facts: [1, 3],
};
