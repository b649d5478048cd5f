// The known sentences in other languages than English: who reads Chinese or German obeys them in Chinese or German. Written for the bare
// view of a text: small letters, accents gone (й is и, ł is l), no blanks between Chinese and Japanese characters.
import { everyMatch, expression, type Find, type Span, type Step } from "./matchers.ts";

export interface Sentence {
  /** One of these is in every such sentence, so that most texts are not searched at all. */
  readonly needs: string;
  readonly source: string;
}

/** Up to `most` characters of the same sentence. */
export const gap = (most: number) => `[^.!?。]{0,${most}}?`;

/** `verb … object` with `which` of them said somewhere between or behind: Ignore all the rules above. */
export function verbFirst(verbs: string, which: string, objects: string, reach = 70): Sentence {
  const source = `(?<![a-zа-я])(?:${verbs})(?=${gap(reach)}(?:${which}))${gap(reach)}(?:${objects})`;
  return { needs: objects.replace(/\([^)]*\)/g, ""), source };
}

/** `which … object … verb`, as in Japanese or Turkish. */
function objectFirst(which: string, objects: string, verbs: string, reach = 24): Sentence {
  return { needs: objects, source: `(?:${which})${gap(reach)}(?:${objects})${gap(reach)}(?:${verbs})` };
}

const IGNORE: readonly Sentence[] = [
  // Chinese. 可忽略 is advice to a reader: may be ignored.
  verbFirst(
    "(?<!可以?|能|会|會|被|将|自动)(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要理會|不要遵守|抛开|丢弃)",
    "之前|先前|以前|以上|上述|上面|此前|前面|早先|所有|全部|一切|任何|系统|系統|原有|原来|你的",
    "指令|指示|提示词|提示詞|系统提示|系統提示",
    16,
  ),
  objectFirst(
    "之前|先前|以上|上面|此前|前面",
    "指令|指示|提示词|提示詞",
    "作废|作廢|忽略|无视|無視|失效|忘掉|忘记|忘記",
    10,
  ),
  // Japanese, Korean
  objectFirst(
    "以前|これまで|今まで|上記|前述|先の|先ほど|すべて|全て|あらゆる|元の|前の",
    "指示|命令|指令|プロンプト|制約",
    "無視し|無視せよ|無視しろ|忘れて|忘れろ|忘れなさい|破棄し|従わない|従うな",
    16,
  ),
  objectFirst(
    "이전|앞의|앞선|위의|지금까지|기존|모든|앞서",
    "지시|지침|명령|프롬프트",
    "무시하|무시해|무시하고|잊어|잊으|따르지 마",
  ),
  // Russian, Ukrainian
  verbFirst(
    "(?<!не )(?:про)?игнорируи(?:те)?|забудь(?:те)?|отбрось(?:те)?|пренебреги(?:те)?|не обращаи(?:те)? внимания на",
    "все(?:х)?(?![а-я])|предыдущ|прежн|выше|ранее|прошл|любые",
    "инструкци|указани|распоряжени|команды|правила",
  ),
  verbFirst(
    "(?<!не )(?:про)?ігноруи(?:те)?|забудь(?:те)?|знехтуи(?:те)?",
    "усі|всі|попередн|вище|раніше|минул",
    "інструкці|вказівк|настанов|команди|правила",
  ),
  // Romance languages
  verbFirst(
    "ignora|ignore|ignorad|ignorar|olvida|olvide|olvidad|descarta|haz caso omiso|haga caso omiso|pasa por alto|desestima",
    "todas|todos|anterior|previ|arriba|preced|cualquier|(?<![a-z])tus(?![a-z])",
    "instruccion|indicacion|directiva|ordenes|directrices|consigna|reglas anteriores",
  ),
  verbFirst(
    "ignorez?|ignorer|oubliez?|oublier|negligez?|ne tiens pas compte|ne tenez pas compte|fai(?:s|tes) abstraction",
    "toutes|tous|preced|anterieur|ci-dessus|plus haut|prealable|(?<![a-z])(?:tes|vos)(?![a-z])",
    "instructions|consignes|directives|ordres|regles precedentes",
  ),
  verbFirst(
    "ignora|ignorate|ignori|dimentica|dimenticate|trascura|tralascia|non considerare",
    "tutte|tutti|preced|sopra|anterior|qualsiasi",
    "istruzioni|indicazioni|direttive|ordini|regole precedenti",
  ),
  verbFirst(
    "ignore|ignora|ignorem|esqueca|esquece|esquecam|desconsidere|desconsidera|despreze|descarte",
    "todas|todos|anterior|previa|acima|precedente|(?<![a-z])suas",
    "instrucoes|instrucao|orientacoes|ordens|diretrizes|regras anteriores",
  ),
  // Germanic and other languages of Europe
  verbFirst(
    "ignoriere|ignorier|ignorieren sie|vergiss|vergesst|vergessen sie|missachte|missachten sie|ubergehe|ubergehen sie",
    "alle|vorherig|bisherig|obig|fruher|vorangegangen|vorangehend|vorig|samtlich|deine|oben",
    "anweisung|instruktion|vorgabe|befehle|richtlinien|systemprompt|(?:herigen|obigen|fruheren) regeln",
  ),
  verbFirst(
    "negeer|vergeet|sla over",
    "alle|vorige|voorgaande|eerdere|bovenstaande",
    "instructies|aanwijzingen|opdrachten|richtlijnen",
  ),
  verbFirst(
    "zignoruj(?:cie)?|ignoruj(?:cie)?|zapomnij(?:cie)?|odrzuc|nie zwracaj uwagi na",
    "wszystki|poprzedni|wczesniejsz|powyzsz|dotychczasow",
    "instrukcj|polecen|wytyczn",
  ),
  objectFirst(
    "onceki|yukaridaki|tum|butun",
    "talimat|komut|yonerge",
    "yok say|gormezden gel|unut|dikkate alma|goz ardi et",
  ),
  // Arabic, Hindi, Vietnamese, Indonesian
  verbFirst("تجاهل|انس|انسى|أهمل", "جميع|كل|كافة|السابق|أعلاه|اعلاه", "التعليمات|تعليمات|الأوامر|التوجيهات|الإرشادات"),
  objectFirst("पिछल|पूर्व|पहले|ऊपर|सभी|उपरोक्त|सारे", "निर्देश|आदेश|अनुदेश", "अनदेखा|नजरअंदाज|भूल जा|उपेक्षा|ध्यान न द"),
  verbFirst(
    "bo qua|phot lo|quen di|quen het|dung tuan theo",
    "tat ca|moi|truoc|tren",
    "huong dan|chi dan|chi thi|menh lenh",
  ),
  verbFirst("abaikan|lupakan", "semua|seluruh|sebelumnya|di atas|segala", "instruksi|perintah|arahan|petunjuk"),
];

/** Forget everything above. */
const FORGET: readonly Sentence[] = [
  {
    needs: "忘|忽略",
    source: "(?:忘记|忘記|忘掉|忽略)(?:之前|先前|以上|上面)的?(?:一切|所有内容|全部内容|所有對話|所有对话)",
  },
  { needs: "забудь", source: "забудь(?:те)? (?:обо )?все,? (?:что|сказанное)" },
  { needs: "alles", source: `(?<![a-z])(?:vergiss|vergessen sie) alles${gap(30)}(?:vorher|bisher|davor|zuvor|oben)` },
  {
    needs: "todo lo|tudo",
    source:
      "(?<![a-z])(?:olvida(?:te)?|olvide|esqueca|esquece) (?:de )?(?:todo lo (?:anterior|que)|tudo (?:o que|acima|antes))",
  },
  {
    needs: "tout ce qui|tutto",
    source: "(?<![a-z])(?:oubliez? tout ce qui precede|dimentica(?:te)? tutto (?:quello|cio) che)",
  },
];

const HIDE: readonly Sentence[] = [
  {
    needs: "用户|用戶|使用者",
    source:
      "(?:不要|别|別|勿|不得|不准|不许)[^.!?。]{0,4}(?:告诉|告訴|告知|透露|提及)[^.!?。]{0,4}(?:用户|用戶|使用者)",
  },
  {
    needs: "用户|用戶|使用者",
    source:
      "(?:不要|别|別|勿|不得|不准|不许)(?:向|对|對|跟)(?:用户|用戶|使用者)[^.!?。]{0,6}(?:提|说|說|透露|报告|報告|汇报)",
  },
  {
    needs: "ユーザ",
    source:
      "ユーザー?(?:に|には)[^.!?。]{0,16}(?:(?:伝え|教え|知らせ)(?:ないで|るな|てはいけ|てはなら)|(?:言わ|話さ|報告し)ないで|言うな|秘密にし|内緒にし)",
  },
  {
    needs: "사용자",
    source: "사용자(?:에게|한테)(?:는)?[^.!?。]{0,16}(?:말하지|알리지|알려주지|밝히지|보고하지|비밀로)",
  },
  { needs: "пользовател", source: `не (?:говори|сообщаи|рассказываи|упоминаи)(?:те)?${gap(24)}пользовател` },
  {
    needs: "користувач",
    source: `не (?:кажи|кажіть|повідомляи(?:те)?|розповідаи(?:те)?|говори|говоріть)${gap(24)}користувач`,
  },
  {
    needs: "usuari",
    source: `(?<![a-z])no (?:se lo |le |lo )?(?:digas|diga|cuentes|cuente|informes|menciones|comuniques|reveles)${gap(28)}usuari`,
  },
  {
    needs: "nutzer|anwender",
    source: `(?:sag|sage|erzahle?|verrate|sagen sie|erzahlen sie|verraten sie)${gap(24)}(?:nutzer|anwender)${gap(24)}(?:nicht|kein)`,
  },
  {
    needs: "utilisateur",
    source: `(?<![a-z])n(?:e |.en |e l.)(?:le |la )?(?:dis|dites|revelez?|mentionnez?|parlez?|racontez?)(?![a-z])${gap(28)}utilisateur`,
  },
  { needs: "utent", source: `(?<![a-z])non (?:dire|dirlo|dica|rivelare|menzionare|raccontare)${gap(28)}utent` },
  {
    needs: "usuari|utilizador",
    source: `(?<![a-z])nao (?:diga|conte|informe|revele|mencione|fale)${gap(28)}(?:usuari|utilizador)`,
  },
  { needs: "gebruiker", source: `(?:vertel|zeg)${gap(24)}gebruiker${gap(24)}(?:niet|niets)(?![a-z])` },
  {
    needs: "uzytkownik",
    source: `(?<![a-z])nie (?:mow|mowcie|wspominaj|zdradzaj|ujawniaj|informuj)${gap(24)}uzytkownik`,
  },
  { needs: "kullanici", source: `kullanici(?:ya|lara)${gap(24)}(?:soyleme|bahsetme|anlatma|haber verme)(?!k)` },
  { needs: "المستخدم|للمستخدم", source: "لا (?:تخبر|تقل|تذكر|تكشف|تبلغ)[^.!?。]{0,16}(?:المستخدم|للمستخدم)" },
  { needs: "उपयोगकर्ता|यूजर", source: "(?:उपयोगकर्ता|यूजर)[^.!?。]{0,24}(?:मत बता|न बता|मत कह)" },
  { needs: "nguoi dung", source: "(?<![a-z])(?:dung|khong duoc) (?:noi|tiet lo|ke|bao)(?: voi| cho)? nguoi dung" },
  { needs: "pengguna", source: `jangan (?:beri tahu|beritahu|katakan|sampaikan|ungkapkan)${gap(24)}pengguna` },
];

const LEAK: readonly Sentence[] = [
  { needs: "提示", source: "(?:系统|系統|初始)提示[词詞]?[^.!?。]{0,4}(?:打印|输出|輸出|显示|说|說|贴)出" },
  {
    needs: "提示|指令",
    source:
      "(?:输出|輸出|打印|显示|顯示|泄露|洩露|告诉我|告訴我|透露|复述|公开|说出)[^.!?。]{0,10}(?:系统|系統|初始)(?:提示(?!信息|框|音|语)|指令)",
  },
  {
    needs: "プロンプト",
    source:
      "(?:システム|初期)プロンプト[^.!?。]{0,12}(?:(?:出力|表示|公開|開示)(?:して(?:ください|下さい|くれ)|しろ|せよ)|教えて|見せて|明かして)",
  },
  {
    needs: "프롬프트",
    source: "(?:시스템|초기) ?프롬프트[^.!?。]{0,12}(?:출력해|보여 ?[줘주]|알려 ?[줘주]|공개해|말해)",
  },
  {
    needs: "системн",
    source: `(?:выведи|покажи|раскрои|напечатаи|выдаи)(?:те)?${gap(30)}системн[а-я]{0,4} (?:промпт|подсказк|инструкци)`,
  },
  {
    needs: "системн",
    source: `(?:виведи|покажи|розкрии|надрукуи)(?:те)?${gap(30)}системн[а-яі]{0,4} (?:промпт|підказк|інструкці)`,
  },
  {
    needs: "sistema|prompt",
    source: `(?<![a-z])(?:muestra|revela|imprime|repite)(?:me|nos)?(?![a-z])${gap(30)}(?:(?:prompt|instrucciones|indicaciones) (?:del|de) sistema|prompt inicial)`,
  },
  {
    needs: "system",
    source: `(?<![a-z])(?:gib|zeige?|verrate|nenne|geben sie|zeigen sie|verraten sie)(?![a-z])${gap(30)}system[- ]?(?:prompt|anweisung)`,
  },
  {
    needs: "systeme",
    source: `(?<![a-z])(?:affichez?|revelez?|montrez?|imprimez?|repetez?|donnez?)(?:-moi)?(?![a-z])${gap(30)}(?:prompt|instructions|invite) (?:du )?systeme`,
  },
  {
    needs: "sistema",
    source: `(?<![a-z])(?:mostra|rivela|stampa|ripeti)(?:mi)?(?![a-z])${gap(30)}(?:prompt|istruzioni) (?:di|del) sistema`,
  },
  {
    needs: "sistema",
    source: `(?<![a-z])(?:mostre|revele|imprima|exiba|repita)(?![a-z])${gap(30)}(?:prompt|instrucoes) (?:do|de) sistema`,
  },
  {
    needs: "systeem",
    source: `(?<![a-z])(?:toon|geef|onthul|herhaal)(?![a-z])${gap(30)}systeem ?(?:prompt|instructie)`,
  },
  {
    needs: "systemow",
    source: `(?<![a-z])(?:pokaz|wypisz|ujawnij|wyswietl|podaj)(?![a-z])${gap(30)}(?:prompt[a-z]{0,3} systemow|instrukcj[a-z]{0,3} systemow|systemow[a-z]{0,3} prompt)`,
  },
  {
    needs: "sistem",
    source: `sistem (?:istem|komut|prompt|talimat)[a-z]{0,6}${gap(24)}(?:goster|yazdir|acikla|paylas|soyle)(?!n|r|m)`,
  },
  { needs: "النظام", source: "(?:اعرض|اطبع|أظهر|اظهر|اكشف)[^.!?。]{0,20}(?:موجه|تعليمات|رسالة) النظام" },
  { needs: "सिस्टम", source: "सिस्टम (?:प्रॉम्प्ट|निर्देश)[^.!?。]{0,20}(?:दिखाओ|दिखाएं|बताओ|बताएं|प्रकट)" },
  {
    needs: "he thong|system prompt",
    source: `(?:hien thi|in ra|tiet lo|cho toi xem)${gap(24)}(?:(?:loi nhac|prompt|cau lenh) he thong|system prompt)`,
  },
  {
    needs: "sistem",
    source: `(?:tampilkan|ungkapkan|cetak|tunjukkan|bocorkan)${gap(24)}(?:prompt|instruksi|perintah) sistem`,
  },
];

const ROLE: readonly Sentence[] = [
  {
    needs: "你|您",
    source:
      "(?:[你您](?:现在|現在|从现在起|從現在起|从现在开始)|(?:从现在起|從現在起|从现在开始|從現在開始),?[你您])(?:就?是|将是|扮演|成为|变成)(?:一个|一個|一名|没有|沒有|不受|dan)",
  },
  {
    needs: "あなた",
    source:
      "(?:(?:これから|今から|ただいまから)、?あなたは|あなたは(?:今から|これから|もう))[^.!?。]{0,24}(?:です|である|だ|として)",
  },
  { needs: "부터", source: "(?:이제|지금)부터 (?:너는|당신은|넌)|(?:너는|당신은|넌) (?:이제|지금)부터" },
  {
    needs: "ты",
    source:
      "(?:теперь|отныне|с этого момента) ты(?![а-я])(?! може| зна| готов| умее| в )|(?<![а-я])ты теперь(?! може| зна| готов| умее| в )",
  },
  { needs: "ти", source: "(?:тепер|відтепер|з цього моменту) ти(?![а-яі])(?! може| зна| готов)" },
  {
    needs: "eres|seras",
    source: "(?<![a-z])(?:ahora|a partir de ahora|desde ahora),? (?:eres|seras) (?:un|una|el|la)(?![a-z])",
  },
  {
    needs: "bist|sind",
    source:
      "(?:du bist|sie sind) (?:jetzt|nun|ab jetzt|ab sofort|von nun an) (?:ein|eine|der|die|das|kein|keine)(?![a-z])|(?:ab jetzt|ab sofort|von nun an) (?:bist du|sind sie) (?:ein|eine|der|die|das)(?![a-z])",
  },
  {
    needs: "tu es|vous etes",
    source:
      "(?:tu es|vous etes) (?:maintenant|desormais|a present) (?:une?|le|la)(?![a-z])|(?:desormais|a partir de maintenant|dorenavant),? (?:tu es|vous etes) (?:une?|le|la)(?![a-z])",
  },
  {
    needs: "sei|sarai",
    source: "(?<![a-z])(?:ora|adesso|d.ora in poi|da ora in poi),? (?:sei|sarai) (?:un|una|uno|il|la)(?![a-z])",
  },
  {
    needs: "voce",
    source: "(?:agora|a partir de agora),? voce e (?:um|uma|o|a)(?![a-z])|voce agora e (?:um|uma|o|a)(?![a-z])",
  },
  { needs: "bent", source: "(?:je|jij|u) bent (?:nu|vanaf nu|voortaan) (?:een|de|het)(?![a-z])" },
  { needs: "jestes", source: "(?:od teraz|teraz) jestes |jestes (?:teraz|od teraz) " },
  { needs: "artik", source: "(?<![a-z])(?:sen artik|artik sen) (?:bir|sinirsiz)" },
  { needs: "الآن", source: "(?:أنت|انت) الآن (?!جاهز|مستعد|في|على)|من الآن فصاعدا,? (?:أنت|انت)" },
  { needs: "अब से", source: "अब से (?:तुम|आप)(?=\\s)" },
  { needs: " la ", source: "(?<![a-z])(?:bay gio|tu gio|ke tu bay gio),? (?:ban|may) la (?:mot|tro ly)" },
  { needs: "adalah", source: "(?:mulai )?sekarang (?:kamu|anda) adalah" },
];

const BYPASS: readonly Sentence[] = [
  {
    needs: "限制|规则|規則|约束|約束",
    source:
      "(?:假装|假裝|就像|好像|仿佛|如同)[^.!?。]{0,10}(?:没有|沒有|不受)[^.!?。]{0,6}(?:限制|规则|規則|约束|約束)",
  },
  { needs: "制限", source: "制限(?:が|は|の)?(?:ない|なし)(?:かの)?(?:よう|ものとして|として)" },
  { needs: "없는", source: "(?:제한|제약|규칙)이? 없는 것처럼" },
  {
    needs: "ограничени|правил",
    source: `(?:веди себя|деиствуи|притворись|отвечаи)(?:те)?${gap(24)}(?:будто|словно|как если бы)${gap(28)}(?:ограничени|правил)`,
  },
  {
    needs: "como si|como se",
    source: `(?:actua|comportate|responde|aja|comporte-se|responda),? como s[ie] (?:no|nao)${gap(28)}(?:restriccion|restricoes|limite|reglas|regras)`,
  },
  {
    needs: "als",
    source: `(?:tu so|verhalte dich|handle|benimm dich|antworte)${gap(16)}als (?:ob|hattest|gabe)${gap(36)}(?:beschrankung|einschrankung|grenzen|regeln)`,
  },
  {
    needs: "comme si",
    source: `(?:agis|agissez|fais|faites|comporte|reponds)${gap(20)}comme si${gap(36)}(?:restriction|limite|regle|contrainte)`,
  },
  { needs: "come se", source: `(?:agisci|comportati|rispondi)${gap(16)}come se${gap(28)}(?:restrizion|limit|regole)` },
];

export const abroad = {
  ignore: anySentence([...IGNORE, ...FORGET]),
  hide: anySentence(HIDE),
  leak: anySentence(LEAK),
  role: anySentence(ROLE),
  bypass: anySentence(BYPASS),
};

/** The earliest of the sentences. */
export function anySentence(sentences: readonly Sentence[]): Find {
  const ready = sentences.map(({ needs, source }) => ({ needs: needs.split("|"), find: expression(source) }));
  return (text) => {
    let best: Span | null = null;
    for (const sentence of ready) {
      if (!sentence.needs.some((word) => text.includes(word))) continue;
      const span = sentence.find(text);
      if (span && (!best || span.index < best.index)) best = span;
    }
    return best;
  };
}

/** All places of all of them, in order. */
export function everySentence(sentences: readonly Sentence[]): Step {
  const ready = sentences.map(({ needs, source }) => ({ needs: needs.split("|"), find: everyMatch(source) }));
  return (text) =>
    ready
      .filter(({ needs }) => needs.some((word) => text.includes(word)))
      .flatMap(({ find }) => find(text))
      .sort((a, b) => a.index - b.index);
}
