// Conversations over months with facts planted in them, and questions that ask for the facts in other words. Three kinds that share neither
// frames nor words of a subject: `friends` (people who talk with each other, named in every message), `helper` (one person and an assistant
// that answers at length) and `team` (one person tells about colleagues, facts inside longer reports). Weights were chosen while looking at
// the first two; `team` is held out: do not look at what it misses.

export interface PlantedQuestion {
  readonly language: "english" | "chinese" | "mixed";
  readonly text: string;
  /** The conversation that holds the answer. */
  readonly session: string;
}

export interface TalkSession {
  readonly id: string;
  /** Unix seconds. */
  readonly startedAt: number;
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly content: string }[];
}

export interface Talk {
  readonly sessions: readonly TalkSession[];
  readonly questions: readonly PlantedQuestion[];
}

/** `{p}` a person, `{o}` what it is about, `{v}` the answer. Statements and questions are chosen apart from each other. */
interface Frame {
  readonly language: PlantedQuestion["language"];
  readonly objects: string;
  readonly values: string;
  readonly said: readonly string[];
  readonly asked: readonly string[];
}

interface Kind {
  readonly people: readonly string[];
  readonly frames: readonly Frame[];
  readonly chatter: readonly string[];
  readonly answers: readonly string[];
  /** Facts are about a person. */
  readonly personal: boolean;
  /** Who speaks stands in front of what was said. */
  readonly named: boolean;
  /** A fact is one sentence of a longer message. */
  readonly buried: boolean;
  readonly sessions: number;
  readonly messages: readonly [least: number, most: number];
  readonly facts: readonly [least: number, most: number];
}

export type TalkKind = "friends" | "helper" | "team";

const DAY = 86_400;

export function makeTalk(name: TalkKind, seed: number): Talk {
  const kind = KINDS[name];
  const random = seeded(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(list: readonly T[]) => list[below(list.length)] as T; // never empty
  const between = ([least, most]: readonly [number, number]) => least + below(most - least + 1);
  const used = new Set<string>();
  const sessions: TalkSession[] = [];
  const questions: PlantedQuestion[] = [];
  let at = Date.UTC(2025, 0, 6, 9) / 1000;
  for (let n = 0; n < kind.sessions; n++) {
    at += DAY * (0.3 + 2 * random());
    const id = `${name}-${n}`;
    const pair = [pick(kind.people), pick(kind.people)] as const;
    const lines: string[] = [];
    const facts = between(kind.facts);
    for (let fact = 0; fact < facts; fact++) {
      const frame = pick(kind.frames);
      const person = pick(pair);
      const object = pick(frame.objects.split(/\s*,\s*/));
      const key = `${kind.personal ? person : ""} ${object} ${kind.frames.indexOf(frame)}`;
      if (used.has(key)) continue; // one conversation has the answer
      used.add(key);
      const fill = (text: string) =>
        text
          .replaceAll("{p}", person)
          .replaceAll("{o}", object)
          .replaceAll("{v}", pick(frame.values.split(/\s*,\s*/)));
      for (const line of fill(pick(frame.said)).split("|"))
        lines.push(kind.named ? `${person}: ${line.trim()}` : line.trim());
      for (const asked of kind.named ? [pick(frame.asked)] : frame.asked)
        questions.push({ language: frame.language, text: fill(asked), session: id });
      for (let idle = below(3); idle > 0; idle--) lines.push(chat(pick(kind.chatter), pick(pair)));
    }
    const length = between(kind.messages);
    while (lines.length < length) lines.splice(below(lines.length + 1), 0, chat(pick(kind.chatter), pick(pair)));
    const messages = lines.flatMap((content, index) => {
      if (kind.named) return [{ role: index % 2 ? ("assistant" as const) : ("user" as const), content }];
      const answer = fillChatter(pick(kind.answers));
      return [
        { role: "user" as const, content },
        { role: "assistant" as const, content: answer },
      ];
    });
    sessions.push({ id, startedAt: at, messages });
  }
  return { sessions, questions };

  function chat(text: string, person: string): string {
    const said = fillChatter(text);
    return kind.named ? `${person}: ${said}` : said;
  }

  /** Talk in passing about what the facts are about: words alone do not find them. */
  function fillChatter(text: string): string {
    return text
      .replaceAll("{o}", () => pick(pick(kind.frames).objects.split(/\s*,\s*/)))
      .replaceAll("{p}", () => pick(kind.people));
  }
}

export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

const frame = (
  language: Frame["language"],
  objects: string,
  values: string,
  said: readonly string[],
  asked: readonly string[],
): Frame => ({ language, objects, values, said, asked });

const FRIENDS: readonly Frame[] = [
  frame(
    "english",
    "sunset, horse, lighthouse, sunflower field, old bridge, forest lake, bowl of cherries, city skyline, sailing boat, mountain village",
    "last Saturday, on my day off, at the studio, for my sister",
    [
      "I finished painting the {o} {v}. It took ages.",
      "Look, I painted a {o} {v}! | The colours came out brighter than I planned.",
    ],
    ["When did {p} paint the {o}?", "Which of {p}'s paintings shows a {o}?", "Did {p} ever do a painting of a {o}?"],
  ),
  frame(
    "english",
    "pottery, salsa, archery, calligraphy, rock climbing, fencing, beekeeping, violin, surfing, yoga",
    "at the community centre, on Tuesdays, with my neighbour, downtown",
    ["I signed up for a {o} class {v}.", "So I started taking {o} lessons {v}. | I am terrible at it but it is fun."],
    ["Where does {p} take {o} lessons?", "What {o} course did {p} join?", "Who goes to {o} classes with {p}?"],
  ),
  frame(
    "english",
    "Lisbon, Kyoto, Oslo, Prague, Marrakesh, Reykjavik, Havana, Dublin, Tallinn, Cusco",
    "in spring, with my cousin, for ten days, by train",
    [
      "We booked flights, I am travelling to {o} {v}!",
      "Just got back from {o}, we went {v}. | The food was the best part.",
    ],
    ["When is {p} flying to {o}?", "Who travelled to {o} with {p}?", "How was the trip {p} made to {o}?"],
  ),
  frame(
    "english",
    "parrot, greyhound, tortoise, kitten, hamster, rabbit, cockatoo, beagle, gecko, goat",
    "Pepper, Biscuit, Moss, Captain, Olive, Nimbus",
    ["We adopted a {o} and named it {v}.", "There is a {o} living with us now. | We call it {v}, the children chose."],
    [
      "What is the name of {p}'s {o}?",
      "How did {p} name the {o} they adopted?",
      "What do they call the {o} at {p}'s house?",
    ],
  ),
  frame(
    "english",
    "hospital, bakery, law firm, shipyard, museum, brewery, airline, publishing house, greenhouse, observatory",
    "as a trainee, three days a week, starting Monday, after two interviews",
    ["I got the job at the {o}, {v}!", "The {o} hired me {v}. | I am still a bit nervous about it."],
    ["Which job did {p} get at the {o}?", "When does {p} start working for the {o}?", "How was {p} hired by the {o}?"],
  ),
  frame(
    "english",
    "marathon, chess tournament, baking contest, quiz night, spelling bee, photo competition, triathlon, debate, poetry slam, regatta",
    "second place, by two points, and cried, against all odds",
    ["I took part in the {o}, {v}.", "We won the {o} {v}! | I could not believe it when they read the names."],
    ["How did {p} do in the {o}?", "What place did {p} win at the {o}?", "When was {p} competing in the {o}?"],
  ),
  frame(
    "english",
    "grandmother, uncle, twin brother, stepsister, nephew, godmother, cousin, grandfather, aunt, mother-in-law",
    "with a broken hip, after the surgery, for her kidneys, and it was scary",
    ["My {o} was in hospital {v}.", "I spent the week caring for my {o}, {v}. | Thank goodness the doctors were kind."],
    [
      "What happened to {p}'s {o} at the hospital?",
      "Why did {p} have to care for the {o}?",
      "How is the {o} of {p} doing after the hospital?",
    ],
  ),
  frame(
    "english",
    "lasagna, dumplings, sourdough, paella, pumpkin soup, baklava, ramen, cheesecake, curry, tiramisu",
    "with a secret spice, for twelve guests, without eggs, from her notebook",
    [
      "I cooked {o} {v} and everybody wanted the recipe.",
      "Tried making {o} at home {v}. | The kitchen is a battlefield now.",
    ],
    [
      "What was special about the {o} that {p} cooked?",
      "When did {p} make {o} at home?",
      "Whose recipe did {p} use for {o}?",
    ],
  ),
  frame(
    "english",
    "bicycle, camera, piano, motorbike, telescope, sewing machine, tent, guitar, kayak, espresso machine",
    "at a flea market, from a colleague, for half the price, online",
    ["I bought a second-hand {o} {v}.", "My new {o} arrived, I found it {v}. | It still needs a few repairs."],
    ["Where did {p} buy the {o}?", "How much did {p} pay for the used {o}?", "From whom did {p} get a {o}?"],
  ),
  frame(
    "english",
    "support group, book club, choir, hiking group, animal shelter, food bank, theatre group, repair café, sports team, language exchange",
    "every Thursday, since the summer, because of a friend, twice a month",
    [
      "I have been volunteering with the {o} {v}.",
      "I joined a {o} {v}. | They made me feel welcome from the first evening.",
    ],
    ["How often does {p} go to the {o}?", "Why did {p} join the {o}?", "When did {p} begin volunteering at the {o}?"],
  ),
  frame(
    "chinese",
    "吉他, 书法, 游泳, 围棋, 法语, 羽毛球, 摄影, 陶艺, 瑜伽, 烘焙",
    "每周三晚上, 跟邻居一起, 在少年宫, 花了三千块",
    ["我报名学{o}了，{v}。", "最近开始上{o}课，{v}。|老师很有耐心，就是有点累。"],
    ["{p}在哪里学{o}？", "{p}的{o}课是什么时候上的？", "{p}什么时候开始学习{o}的？"],
  ),
  frame(
    "chinese",
    "成都, 厦门, 哈尔滨, 桂林, 拉萨, 青岛, 西安, 大理, 苏州, 敦煌",
    "国庆节, 和表妹, 坐高铁, 待了五天",
    ["我们去{o}旅游了，{v}，风景特别好。", "机票订好了，{v}去{o}玩。|行李还没收拾呢。"],
    ["{p}去{o}旅行是和谁一起？", "{p}是怎么去{o}的？", "{p}去{o}玩了几天？"],
  ),
  frame(
    "chinese",
    "橘猫, 金毛, 仓鼠, 鹦鹉, 乌龟, 柯基, 兔子, 金鱼",
    "豆豆, 年糕, 阿福, 团子, 可乐",
    ["家里新养了一只{o}，取名叫{v}。", "我领养了一只{o}。|孩子给它起名{v}。"],
    ["{p}家的{o}叫什么名字？", "{p}养的{o}是谁起的名字？", "{p}领养的那只{o}叫啥？"],
  ),
  frame(
    "chinese",
    "妈妈, 外公, 婆婆, 表哥, 女儿, 舅舅, 奶奶, 姐姐",
    "做了手术, 住院一周, 膝盖疼, 血压高",
    ["我{o}生病了，{v}，这几天都在医院。", "陪{o}去医院检查，{v}。|医生说要注意休息。"],
    ["{p}的{o}生了什么病？", "{p}的{o}为什么去医院？", "{p}陪{o}看病是怎么回事？"],
  ),
  frame(
    "chinese",
    "红烧肉, 小笼包, 月饼, 酸菜鱼, 饺子, 蛋挞, 麻婆豆腐, 粽子",
    "给八个客人, 用外婆的方子, 第一次, 放多了盐",
    ["周末做了{o}，{v}，大家都说好吃。", "我试着在家做{o}，{v}。|厨房一团糟。"],
    ["{p}做的{o}味道怎么样？", "{p}是用谁的方法做{o}的？", "{p}什么时候在家里做过{o}？"],
  ),
  frame(
    "chinese",
    "自行车, 相机, 钢琴, 扫地机器人, 帐篷, 咖啡机, 望远镜, 电动车",
    "在二手市场, 同事转让, 打了五折, 花了两千",
    ["我买了一台{o}，{v}。", "新的{o}到了，{v}买的。|还没来得及用。"],
    ["{p}的{o}是在哪买的？", "{p}买{o}花了多少钱？", "{p}从谁那里买到{o}的？"],
  ),
  frame(
    "mixed",
    "docker, kubernetes, redis, nginx, postgres, webpack, terraform, grafana",
    "端口改成8443, 重启三次才好, 日志写满了磁盘, 版本太旧",
    ["昨天用{o}部署服务，{v}。", "{o}又出问题了，{v}。|折腾到半夜才搞定。"],
    ["{p}部署{o}的时候遇到了什么问题？", "{p}的{o}问题最后怎么解决的？", "What went wrong when {p} deployed {o}?"],
  ),
  frame(
    "mixed",
    "Notion, Figma, Excel, Photoshop, Blender, Obsidian, Python, Unity",
    "网课, 图书馆的书, 公司培训, 同事教的",
    ["最近在学{o}，主要靠{v}。", "我用{o}做了个小项目，{v}帮了大忙。"],
    ["{p}是怎么学{o}的？", "{p}用{o}做了什么项目？", "How does {p} learn {o}?"],
  ),
];

const FRIENDS_CHATTER = [
  "How was your week? Mine was busy but fine.",
  "That sounds wonderful, tell me more about it!",
  "I was thinking about {o} the other day, funny you mention it.",
  "My neighbour keeps talking about {o}, I hardly listen.",
  "Have you spoken with {p} lately? I miss those evenings.",
  "Honestly I need a holiday, work has been a lot.",
  "You always know how to cheer me up, thank you.",
  "Somebody at work has a {o} too, what a coincidence.",
  "I read an article about {o} yesterday, quite interesting.",
  "Yes! Let us meet soon and catch up properly.",
  "The weather has been awful, I stayed inside all weekend.",
  "哈哈，真的吗？太有意思了。",
  "最近工作特别忙，天天加班。",
  "有空一起吃饭吧，好久没见了。",
  "我朋友也说起过{o}，没想到你也喜欢。",
  "昨天看新闻提到{o}，挺有意思的。",
  "{p}最近怎么样？好久没联系了。",
  "嗯嗯，我也这么觉得。",
  "刚才在看{o}的视频，停不下来。",
];

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

const HELPER_ANSWERS = [
  "Of course. Here is a first version; tell me what to change and I will adjust length, tone or structure as you like.",
  "I would begin with the simplest option, check whether it helps, and only then spend time or money on the rest.",
  "Done. I kept the facts as you gave them and left everything else out, so that it stays easy to read.",
  "Good question. In general there are three things to look at: cost, time, and how much you care about the result.",
  "Noted. If anything changes, tell me, and I will take it into account from then on.",
  "好的，已经记下了。如果有变化随时告诉我，我会更新。",
  "没问题。我建议先从最简单的办法开始，看看有没有效果，再考虑别的。",
  "整理好了，您看看还需要怎么改。",
];

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

const KINDS: Readonly<Record<TalkKind, Kind>> = {
  friends: {
    people: "Maya, Tom, Ingrid, Rafael, Priya, Callum, Noor, Elena, 小林, 阿杰, 王芳, 陈晨".split(", "),
    frames: FRIENDS,
    chatter: FRIENDS_CHATTER,
    answers: FRIENDS_CHATTER,
    personal: true,
    named: true,
    buried: false,
    sessions: 420,
    messages: [14, 26],
    facts: [3, 5],
  },
  helper: {
    people: "me".split(", "),
    frames: HELPER,
    chatter: HELPER_CHATTER,
    answers: HELPER_ANSWERS,
    personal: false,
    named: false,
    buried: false,
    sessions: 160,
    messages: [5, 14],
    facts: [1, 2],
  },
  team: {
    people: "Sofia, Bjorn, Amara, Kenji, Lucia, Dmitri, Hannah, Omar, 刘洋, 赵敏, 孙浩, 周婷".split(", "),
    frames: TEAM,
    chatter: TEAM_CHATTER,
    answers: HELPER_ANSWERS,
    personal: true,
    named: false,
    buried: true,
    sessions: 260,
    messages: [2, 30],
    facts: [1, 3],
  },
};
