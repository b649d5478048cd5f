// The known orders in other words, in English and in the languages most of them are seen in: rules that "no longer apply", what the user
// asked to be forgotten or kept from him, notes to whatever model reads the page, texts to decode and obey. Written for the bare view.
import { anySentence, everySentence, gap, type Sentence, verbFirst } from "./languages.ts";
import { anyOf, around, everyMatch, inParagraph, type Span, type Step } from "./matchers.ts";

const WHICH = "(?:previous|prior|above|earlier|preceding|original|initial|foregoing)";
const RULES = "(?:instructions?|directives?|orders|system prompts?|prompts?|guidance|guidelines)";
const COMMANDS = "instructions?|directives?|system prompt";
/** Advice to a reader goes on like this: the instructions above do not apply on Windows. */
const NO_CONDITION =
  "(?![a-z]| (?:if|on|when|unless|for|in|with|below|as|until|since|to|by|because|from|after|once|anymore (?:on|if|for|in)))";
const NOT_DENIED = "(?<!(?:not|never|n.t|cannot) (?:[a-z]{1,12} )?)";
/** Where an order may begin; "later files override earlier instructions" is none. */
const ORDER = "(?<=^|[.!?:;,\\n>*(\"'-]\\s{0,3}|(?:please|now|must|and|then|immediately|just|should) )";

const IGNORE: readonly Sentence[] = [
  {
    needs: "aside",
    source: `(?<![a-z])(?:set|put|push|cast|lay|brush|leave) (?=[^.!?]{0,60}?aside)[^.!?]{0,60}?(?:${WHICH} (?:[a-z]+ )?(?:${RULES}|rules)|the above(?=[.,;:!?\\n]|$| and | then )|everything (?:above|before|so far|you (?:were|have been) told)|(?:${COMMANDS}) (?:above|before|so far))`,
  },
  {
    needs: "instruction|directive|system prompt",
    source: `${ORDER}(?:override|overrule|cancel|revoke|nullify|discard|abandon|dismiss|erase|unlearn|throw (?:out|away)|stop (?:following|obeying)|do not (?:follow|obey)|don.t (?:follow|obey)) (?:(?:all|any|of|the|your|every|each|my|these|those) ){0,5}(?:${WHICH} (?:[a-z]+ )?(?:${COMMANDS}|orders|guidelines|prompts?)|(?:${COMMANDS}) (?:above|given (?:above|before|earlier)|so far))${NO_CONDITION}`,
  },
  {
    needs: "override your|overrule your",
    source: `${ORDER}(?:override|overrule) your (?:[a-z]+ ){0,2}(?:${COMMANDS}|programming|training|guidelines)`,
  },
  {
    needs: "no longer|void|cancel|revoked|suspended|rescinded|nullified|lifted",
    source: `(?<![a-z])(?:${WHICH} (?:[a-z]+ )?(?:${COMMANDS}|orders|guidelines|prompts?)|(?:${COMMANDS}) (?:above|(?:you (?:were|have been) )?given (?:above|before|earlier)|so far)|your (?:[a-z]+ )?(?:${COMMANDS}|guidelines|restrictions)|everything (?:above|you (?:were|have been) told))[^.!?]{0,30}?(?:no longer (?:apply|applies|counts?|holds?|binds?|stands?)|(?:are|is|have been|has been) (?:hereby |now |all )?(?:no longer (?:valid|binding|in (?:force|effect))|void|null and void|cancell?ed|revoked|suspended|rescinded|nullified|lifted))${NO_CONDITION}`,
  },
  {
    needs: "user|human",
    source: `${NOT_DENIED}(?<![a-z])(?:forget|ignore|disregard|abandon|never mind|set aside) (?:(?:about|all|everything|anything|whatever|what|that|of|just|the|your|this|current) ){1,5}(?:user|human)(?:.?s)? (?:[a-z]+ ){0,2}(?:asked|said|told|wanted|wrote|requested|wants|asks|request|question|task|instructions?|goal|query|message)(?![a-z])`,
  },
  // Chinese, Japanese, Korean
  {
    needs: "指令|指示|提示|规则|規則",
    source:
      "(?:之前|先前|以上|上述|上面|此前|前面|原有|原来)的?(?:所有|一切|全部)?(?:指令|指示|规则|規則|提示词|提示詞|系统提示)[^.!?。]{0,8}(?:不再(?:适用|有效|生效|算数)|(?:均|都|全部|已|已经|现已|一律)(?:作废|失效|无效|取消|撤销))",
  },
  {
    needs: "指令|指示|提示",
    source:
      "(?:撇开|放下|搁置|不要管|别管|不用管|推翻|覆盖|取消|停止(?:遵循|遵守|执行)|不要再?(?:遵循|遵守|执行)|不再(?:遵循|遵守))[^.!?。]{0,6}(?:之前|先前|以上|上述|上面|此前|前面|原有|原来|你的)[^.!?。]{0,6}(?:指令|指示|提示词|提示詞|系统提示)",
  },
  {
    needs: "用户|用戶|使用者",
    source:
      "(?<!不要|不能|别|不得)(?:忘记|忘掉|忽略|无视|不要管|别管|不用理会|不要理会|放弃)[^.!?。]{0,4}(?:用户|用戶|使用者)(?:刚才|刚刚|之前|所|的|原来|原本|最初){0,3}(?:要求|问题|请求|任务|问的|说的|提问|指令|指示)",
  },
  {
    needs: "指示|命令|プロンプト|ルール",
    source:
      "(?:(?:以前|これまで|今まで|先の|先ほど|元の)[^.!?。]{0,6}(?:指示|命令|プロンプト|ルール)[^.!?。]{0,10}(?:無効|適用され(?:ない|ません)|撤回|取り消)|(?:以前|これまで|今まで|先の|先ほど|元の|上記|前の|すべて)[^.!?。]{0,6}(?:指示|命令|プロンプト)[^.!?。]{0,8}(?:上書きし(?:て|ろ)|脇に置|棚上げ|取り消し(?:て|ろ)|従うのをやめ|従わなくて|守らなくて|捨てて))",
  },
  {
    needs: "ユーザ",
    source:
      "ユーザー?(?:が|の|から)[^.!?。]{0,12}(?:質問|依頼|要求|頼んだこと|尋ねたこと|指示|言ったこと|タスク)[^.!?。]{0,8}(?:忘れて|忘れろ|忘れなさい|無視して(?:ください|下さい|,|、)|無視しろ|無視せよ|放棄して)",
  },
  {
    needs: "지시|지침|명령|프롬프트|규칙",
    source:
      "(?:이전|앞의|앞선|위의|지금까지의?|기존)[^.!?。]{0,10}(?:지시|지침|명령|프롬프트|규칙)[^.!?。]{0,14}(?:무효|더 ?이상 (?:적용|유효)|취소(?:되|하)|폐기(?:되|하)|철회|제쳐|덮어쓰(?:고|세요|라)|따르지 말)",
  },
  {
    needs: "사용자",
    source:
      "사용자(?:가|의)[^.!?。]{0,14}(?:질문|요청|부탁|지시|말한 것|작업)[^.!?。]{0,10}(?:잊어|잊으|잊고|무시하(?:고|세요|라|십)|무시해)",
  },
  // Russian
  {
    needs: "инструкци|указани|распоряжени|правил",
    source: `(?:предыдущ|прежн|ранее|прошл|вышеуказанн|вышеизложенн|все)[а-я]{0,5}${gap(24)}(?:инструкци|указани|распоряжени|правил)[а-я]{0,3}${gap(24)}(?:больше не (?:деиству|применя)|более не (?:деиству|применя)|утратил|отменены|отменяются|недеиствительн|аннулирован)`,
  },
  verbFirst(
    "отложи(?:те)?|отмени(?:те)?|переопредели(?:те)?|перестань(?:те)? (?:следовать|выполнять)|не (?:следуи|выполняи|соблюдаи)(?:те)?|оставь(?:те)?",
    "предыдущ|прежн|выше|ранее",
    "инструкци|указани|распоряжени",
    50,
  ),
  {
    needs: "пользовател",
    source: `(?<!не )(?:забудь|игнорируи|отбрось)(?:те)?,? (?:о |об |про )?${gap(16)}(?:что|просьб|вопрос|запрос|задани|задач)[а-я]{0,4}${gap(20)}пользовател`,
  },
  // Spanish, Portuguese, Italian, French, German
  {
    needs: "instruccion|indicacion|directiva|ordenes|reglas",
    source: `(?:instrucciones|indicaciones|directivas|ordenes|reglas) (?:anteriores|previas|precedentes|de arriba|originales)${gap(24)}(?:ya no (?:se aplican|aplican|son validas|valen|rigen|tienen)|quedan? (?:anulad|sin efecto|revocad|suspendid)|han sido (?:anulad|revocad))`,
  },
  verbFirst(
    "deja(?:d)? de lado|dejen? de lado|anula|anule|sobrescrib[ae]|invalida|no sigas|no siga|no obedezcas|deja de (?:seguir|obedecer)|haz a un lado",
    "anterior|previ|arriba|preced",
    "instruccion|indicacion|directiva|directrices",
    50,
  ),
  {
    needs: "usuari",
    source: `(?<!no (?:te )?)(?<![a-z])(?:olvida(?:te)?|olvide(?:se)?|ignora|ignore|descarta|abandona)(?: de)? ${gap(14)}(?:lo que|la (?:peticion|pregunta|solicitud|tarea)|el pedido)${gap(16)}usuari`,
  },
  {
    needs: "instrucoes|orientacoes|ordens|diretrizes|regras",
    source: `(?:instrucoes|orientacoes|ordens|diretrizes|regras) (?:anteriores|previas|acima|precedentes|originais)${gap(20)}(?:nao (?:se aplicam|valem|sao|tem) mais|nao sao mais|ja nao (?:se aplicam|valem|sao)|(?:foram|estao|ficam) (?:anuladas|canceladas|revogadas|suspensas)|perderam)`,
  },
  verbFirst(
    "deixe de lado|deixa de lado|ponha de lado|poe de lado|anule|sobrescreva|nao siga|pare de seguir|abandone",
    "anterior|previa|acima|precedente",
    "instrucoes|instrucao|orientacoes|diretrizes",
    50,
  ),
  {
    needs: "usuari|utilizador",
    source: `(?<!nao (?:se )?)(?<![a-z])(?:esqueca|esquece|ignore|ignora|abandone) ${gap(12)}(?:o que|o pedido|a pergunta|a solicitacao|a tarefa)${gap(16)}(?:usuari|utilizador)`,
  },
  {
    needs: "istruzioni|indicazioni|direttive|ordini|regole",
    source: `(?:istruzioni|indicazioni|direttive|ordini|regole) (?:precedenti|di cui sopra|sopra|iniziali|anteriori)${gap(20)}(?:non (?:si applicano|valgono|sono) piu|non hanno piu|sono (?:ora )?(?:annullate|nulle|revocate|sospese|decadute))`,
  },
  verbFirst(
    "mett(?:i|ete|a) da parte|accantona|annulla|sovrascrivi|non seguire|smett(?:i|ete) di seguire|abbandona|lascia perdere",
    "preced|sopra|anterior",
    "istruzioni|indicazioni|direttive",
    50,
  ),
  {
    needs: "utent",
    source: `(?<!non )(?<![a-z])(?:dimentica(?:te|re)?|ignora(?:te|re)?|lascia perdere|abbandona) ${gap(12)}(?:cio che|quello che|quanto|la (?:richiesta|domanda)|il compito|le richieste)${gap(16)}utent`,
  },
  {
    needs: "instructions|consignes|directives|ordres|regles",
    source: `(?:instructions|consignes|directives|ordres|regles) (?:precedente?s?|anterieure?s?|ci-dessus|initiales)${gap(20)}(?:ne s.appliquent plus|ne sont plus (?:valables|valides|en vigueur)|sont (?:desormais )?(?:annulee?s|caduques|nulles|revoquees|suspendues)|n.ont plus|ne comptent plus)`,
  },
  verbFirst(
    "mets de cote|mettez de cote|laissez? de cote|annulez?|ecartez?|outrepassez?|ne (?:suis|suivez|respectez?) (?:pas|plus)|cessez? de (?:suivre|respecter)|passez? outre",
    "preced|anterieur|ci-dessus|plus haut",
    "instructions|consignes|directives",
    50,
  ),
  {
    needs: "utilisateur",
    source: `(?<![a-z])(?:oubliez?|ignorez?|laissez? tomber)(?! pas) ${gap(16)}(?:ce que|la (?:demande|question|requete|tache))${gap(16)}utilisateur`,
  },
  {
    needs: "anweisung|instruktion|vorgabe|regel|befehle|richtlinie",
    source: `(?:vorherig|bisherig|obig|fruher|vorangegangen|vorig|ursprunglich|deine)[a-z]{0,3} ${gap(20)}(?:anweisung|instruktion|vorgabe|regel|befehle|richtlinie)[a-z]{0,3}${gap(20)}(?:gelten (?:ab (?:jetzt|sofort) )?nicht mehr|gelten nicht langer|(?:sind|ist) (?:hiermit |nun |damit |ab sofort )?(?:nicht mehr gultig|ungultig|aufgehoben|hinfallig|nichtig|auss?er kraft))`,
  },
  {
    needs: "anweisung|instruktion",
    source: `(?<![a-z])(?:setze?|lasse?|lege?|verwirf|uberschreibe?|befolge|verwerfen sie|befolgen sie|musst|sollst|solltest|mussen|bitte) ${gap(24)}(?:vorherig|bisherig|obig|fruher|vorangegangen|vorig)e[nr]? ${gap(12)}(?:anweisung|instruktion)[a-z]{0,3} ?(?:beiseite|nicht (?:mehr|langer)|ignorieren|vergessen|missachten|auss?er|verwerfen|(?<=(?:verwirf|schreibe?|werfen sie) [^.!?]{0,60})[.,!])`,
  },
  {
    needs: "nutzer|anwender",
    source: `(?<![a-z])(?:vergiss|vergessen sie|ignoriere|ignorieren sie|missachte|verwirf),? (?!nicht)${gap(24)}(?:was|frage|anfrage|aufgabe|auftrag|wunsch|anliegen)${gap(20)}(?:nutzer|anwender)`,
  },
];

const HIDE: readonly Sentence[] = [
  {
    needs: "user|human",
    source:
      "(?<![a-z])(?:do not|don.t|never|must not) (?:ever )?(?:mention|divulge|disclose|reveal|admit|report)(?: (?:any of )?(?:this|that|these|those|it|them|what|the fact)(?![a-z])[^.!?]{0,40}?| [^.!?]{0,40}?(?<=mention[^.!?]{0,42})) to (?:the|your) (?:user|human)s?(?![a-z])",
  },
  {
    needs: "user|human",
    source:
      "(?<![a-z])(?:do not|don.t|never) (?:inform|notify|alert|warn) (?:the|your) (?:user|human) (?:about|of|that) (?:this|these|it|what you|any of)(?![a-z])|(?<![a-z])keep (?:this|these|it|that|the following|the above)(?: [a-z]+){0,3} (?:secret |hidden |private |concealed |confidential )?from (?:the|your) (?:user|human)|(?<![a-z])the (?:user|human) (?:must|should) (?:not|never) (?:know|learn|find out|be told|be informed|hear)(?: about| of| that)? (?:this|these|it|any of|what)(?![a-z])|(?<![a-z])without (?:telling|informing|mentioning (?:it|this) to) (?:the|your) (?:user|human) (?:about|of) (?:this|it)(?![a-z])",
  },
  {
    needs: "用户|用戶|使用者",
    source:
      "(?:不要|别|別|勿|不得|不准|不许|切勿|禁止)[^.!?。]{0,4}(?:让|讓|使|被)(?:用户|用戶|使用者)(?:知道|发现|發現|察觉|得知)(?!错误|密码)|(?<!不应|不能|不会|不该|不可|不得|不要|从不|绝不|勿)(?:对|對|向)(?:用户|用戶|使用者)(?:保密|隐瞒|隱瞞)|瞒着(?:用户|使用者)",
  },
  {
    needs: "ユーザ",
    source:
      "ユーザー?に(?:は)?[^.!?。]{0,16}(?:(?:言及|報告|開示)しないで|(?:言及|報告|開示)するな|触れないで|知られないよう|気づかれないよう|明かさないで|話さないで|話すな|黙ってい)",
  },
  { needs: "사용자", source: "사용자(?:에게|한테|가)(?:는)?[^.!?。]{0,16}(?:언급하지|알지 못하게|모르게|몰래|들키지)" },
  {
    needs: "пользовател",
    source: `не (?:раскрываи|докладываи|выдаваи|упоминаи|признаваися)(?:те|тесь)?${gap(28)}пользовател|(?:скрои|утаи|скрыв?аи)(?:те)? (?:это|все|данн)${gap(16)}от пользовател|пользовател[а-я]{0,3} не долж(?:ен|на|ны) (?:знать|узнать)`,
  },
  {
    needs: "usuari",
    source: `(?<![a-z])no (?:se lo |le |lo )?(?:hables|avises|expliques|hagas mencion|dejes que)${gap(28)}usuari|usuari[oa] no debe (?:saber|enterarse)|sin (?:decirselo|decirle nada|mencionarlo|mencionarselo) al usuari`,
  },
  {
    needs: "usuari|utilizador",
    source: `(?<![a-z])nao (?:comente|comunique|deixe)${gap(24)}(?:usuari|utilizador)[a-z]{0,2}(?: saber| perceber| descobrir|[.,;!\\n]|$)|(?:usuari[oa]|utilizador) nao (?:deve|pode) (?:saber|descobrir|ficar sabendo)|sem (?:contar|dizer|mencionar) (?:nada |isso )?ao (?:usuari|utilizador)`,
  },
  {
    needs: "utent",
    source: `(?<![a-z])non (?:far(?:lo)? sapere|parlarne|menzionarlo|dirlo|segnalarlo|comunicarlo|farne parola)${gap(24)}utent|utente non deve (?:sapere|scoprire|venire a sapere)|senza (?:dirlo|dire nulla|farne parola|farlo sapere) all.utent`,
  },
  {
    needs: "utilisateur",
    source: `utilisateur ne doit (?:pas|rien|jamais) (?:savoir|apprendre|en savoir|etre (?:informe|au courant))|(?<![a-z])n.(?:informez?|avertis|avertissez|avisez?) (?:pas|jamais|surtout pas)${gap(16)}utilisateur|cachez?[- ](?:le|la|cela|ceci) a l.utilisateur|(?<![a-z])ne (?:le |la |les |lui )?(?:mentionnez?|signalez?|communiquez?) (?:pas|rien|jamais)${gap(16)}utilisateur`,
  },
  {
    needs: "nutzer|anwender",
    source: `(?:verschweig|verheimlich)[a-z]{0,2}(?: sie)?${gap(30)}(?:nutzer|anwender)|erwahn[a-z]{0,2}(?: sie)? ${gap(30)}(?:nutzer|anwender)${gap(16)}(?:nicht|nichts)(?![a-z])|erwahn[a-z]{0,2}(?: sie)? ${gap(16)}(?:nicht|nichts) ${gap(20)}(?:nutzer|anwender)|(?:nutzer|anwender) (?:darf|soll|sollen|durfen) ${gap(16)}(?:nichts|nicht) ${gap(10)}(?:erfahren|wissen|mitbekommen)`,
  },
];

// A note to whatever model reads it, and behind it an order. The note alone is how projects greet their agents.

const NAMES =
  "(?<![a-z])(?:a\\.?i\\.?|llm|gpt|chatgpt|claude|gemini|copilot|hermes|(?:large )?language model|assistant|agent|chatbot|bot)(?:[ -](?:assistant|agent|model|system|reviewer|tool|reader|crawler|bot|summari[sz]er))?s?(?![a-z])";
const LINE_START = "(?:^|\\n)[ \\t>*#/\\-[(\"']{0,8}";
const ADDRESSED = "(?: (?:message|note|prompt|notice|override|instructions?))?[\\])*]{0,3}[ \\t]*[:,]";
const HOSTILE: readonly Sentence[] = [
  {
    needs: "ignore|disregard|forget|override|set aside|discard",
    source: `${NOT_DENIED}(?<![a-z])(?:ignore|disregard|forget|override|set aside|discard) (?:[a-z.']+ ){0,4}?(?:(?:your|previous|prior|above|earlier|system|safety|these|those|the) (?:[a-z]+ )?(?:instructions?|prompts?|guidelines|training|polic(?:y|ies)|restrictions)|(?:your|previous|prior|above|earlier|safety|the) rules(?! (?:in|of|for|under))|(?:the|this|your) task|user|the above|everything (?:above|before|else|you|so far)|page|what was said)(?![a-z])`,
  },
  {
    needs: "user|human|owner|operator|anyone|anybody",
    source:
      "(?:do not|don.t|never|must not) (?:[a-z]+ )?(?:tell|mention|inform|notify|warn|alert) (?:[a-z']+ ){0,6}(?:user|human|owner|operator|anyone|anybody)(?![a-z])",
  },
  {
    needs: "out of your",
    source:
      "(?<![a-z])(?:keep|leave) (?:[a-z]+ ){1,4}out of your (?:[a-z]+ )?(?:summary|report|answer|reply|response|message)",
  },
  {
    needs:
      "secret|password|key|credential|token|.env|conversation|history|system prompt|environment|env var|/etc/passwd|~/.ssh|data|cookie",
    source: `(?<!(?:not|never|n.t|without|avoid|no) (?:ever )?)(?<![a-z])(?:(?:send|upload|post|forward|e-?mail|transmit|submit|leak|exfiltrate|paste|append|attach|reveal|dump) (?:[a-z'.~/]+ ){0,8}?(?:secrets?|passwords?|api[ _-]keys?|credentials|access tokens|\\.env|(?:ssh|private)[ _-]keys?|conversation|(?:chat|message) history|system prompt|environment variables|env vars|/etc/passwd|~/\\.ssh|private data|personal data|cookies)|(?:print|output|repeat|copy|encode) (?:[a-z']+ ){0,6}?(?:conversation|(?:chat|message) history|system prompt|api[ _-]keys?|passwords?)(?![a-z]))`,
  },
  {
    needs: "approve|recommend|endorse|hire|praise|shortlist|rate|rank|promote",
    source:
      "(?<!we |we.d |i )(?<![a-z])(?:approve|recommend|endorse|hire|praise|shortlist|rate|rank|promote) (?:only |always |strongly )?(?:this|our|my|us|it|him|her|the (?:candidate|applicant|product|paper|author|company|seller|pull request))(?![a-z])",
  },
  {
    needs: "that |only|simply|just",
    source:
      "(?<![a-z])(?:say|claim|conclude) that |(?<![a-z])(?:respond|reply|answer) (?:with only|only|simply|just)(?: with)? (?!in |if |when |after |to )",
  },
  {
    needs: "review|rating|score|recommendation",
    source:
      "(?:give|write|leave) (?:only )?(?:a|an) (?:[a-z]+ )?(?:positive|glowing|favou?rable|perfect|five.star|high) (?:review|rating|score|recommendation)",
  },
  {
    needs: "base64|payload|encoded|silently",
    source: "(?:run|execute) (?:[a-z]+ ){0,4}(?:base64|payload|encoded|silently)",
  },
  {
    needs: "delete|wipe|erase|destroy",
    source: `${NOT_DENIED}(?<![a-z])(?:delete|wipe|erase|destroy) (?:the (?:user|repo|database|home)|everything)`,
  },
  {
    needs: "transfer|wire|pay|send",
    source:
      "(?<![a-z])(?:transfer|wire|pay|send) (?:[a-z]+ ){0,3}(?:money|funds|bitcoins?|btc|eth|[$€£]\\s?\\d|\\d+ (?:usd|eur|btc|eth))",
  },
  {
    needs: "instructions|task|objective|goal",
    source: "(?:your (?:new|real|actual)|the real) (?:instructions|task|objective|goal)(?::| is | are )",
  },
];

/** A name of the kind of reader, told from a mere mention by the words around it. */
const names = everyMatch(NAMES);
const greetings = [
  around(
    "(?<![a-z])(?:note|notice|message|memo|instructions?|attention|reminder|hint|directive|orders?|request|warning|psa|dear|hello|hey|hi|important)(?:[ ,:!-]{1,3}(?:for|to|all|any|the|this|every|each|you|your|my|future|fellow|helpful)){0,4}[ ,:!-]{1,3}|(?<![a-z])if you(?: are|.re) (?:an?|the) (?:[a-z]+ ){0,2}",
    null,
  ),
  around(null, " (?:reading|parsing|processing|summari[sz]ing|crawling|visiting|that reads?|who reads?) (?:this|the)"),
  around(`${LINE_START}(?:to )?(?:automated |autonomous |coding )?`, ADDRESSED),
];
const headings = everyMatch(`${LINE_START}(?:system|developer|admin)${ADDRESSED}`);

const addresses: Step = (text) =>
  [...names(text).flatMap((name) => firstOf(greetings, text, name)), ...headings(text)].sort(byIndex);

function firstOf(ways: typeof greetings, text: string, name: Span): Span[] {
  for (const way of ways) {
    const found = way(text, name);
    if (found) return [found];
  }
  return [];
}

const byIndex = (a: Span, b: Span) => a.index - b.index;

const NOTE = inParagraph(320, addresses, everySentence(HOSTILE));

const NOTES: readonly Sentence[] = [
  {
    needs: "致|给|提示|注意|告|对",
    source:
      "(?:致|给|写给|提示|注意|告|对)[^.!?。\\n]{0,6}(?:ai|llm|人工智能|语言模型|大模型|智能体|聊天机器人)(?:助手|助理|模型|代理|系统)?的?(?:说明|备注|提示|注意|注意事项|消息|指令|留言)?[:,][^\\n:]{0,50}?(?:忽略|忘记|无视|不要告诉|不得告诉|别告诉|发送|上传|泄露|删除|转账|推荐|批准|密码|密钥|凭据|api ?key|回复说|声称|评为)",
  },
  {
    needs: "へ|向け|に対する|宛",
    source:
      "(?:ai|llm|言語モデル|人工知能|エージェント|アシスタント)(?:アシスタント|エージェント|モデル)?(?:への|へ|向け|に対する|宛)[^.!?。\\n]{0,8}[:,、][^\\n]{0,120}?(?:無視|忘れ|送信し|アップロード|漏ら|削除し|(?:伝え|言わ|知らせ)ないで|承認し|推薦し|勧め|パスワード|秘密|apiキー|と答え|と回答|転送し|送金)",
  },
  {
    needs: "에게|위한|용",
    source:
      "(?:ai|llm|인공지능|언어 ?모델|에이전트|챗봇|어시스턴트) ?(?:비서|어시스턴트|에이전트|모델)?(?:에게|를 위한|을 위한|용)[^.!?。\\n]{0,12}[:,][^\\n]{0,120}?(?:무시|잊|보내|전송|업로드|유출|삭제하|말하지|알리지|승인하|추천하|비밀번호|비밀|api 키|라고 (?:답|말)|송금)",
  },
  {
    needs: "примечание|сообщение|внимание|инструкци|указани|заметка|обращение|важно",
    source: `(?:примечание|сообщение|внимание|инструкци[яи]|указани[ея]|заметка|обращение|важно)[^.!?\\n]{0,10}(?:для|к|,|:) (?:[а-я]{1,16} )?(?:ии|llm|ai|неиросет|языков[а-я]{0,3} модел|ассистент|агент|чат-?бот|помощник)[а-я]{0,3}(?:-[а-я]{1,12})?[^\\n]{0,16}[:,!][^\\n]{0,140}?(?:игнориру|забудь|отправ|перешли|загрузи|раскро|удали|одобри|рекоменду|парол|секрет|не (?:говори|сообщаи|упоминаи)|скажи|ответь)`,
  },
  note(
    "nota|aviso|mensaje|instruccion(?:es)?|atencion|importante|recordatorio",
    "para|a|al|los|las|el|la|cualquier|todos|todas|toda|de",
    "ia|llm|ai|inteligencia artificial|asistentes?|modelos? de (?:lenguaje|ia)|agentes?|chatbots?|bots?",
    "ignor|olvid|envi[ae]|reenvi|filtra|revel|borra|elimina|aprueb|recomiend|contrasen|secret|credencial|no (?:le |se lo )?(?:digas|menciones)|di que|responde (?:que|solo)|transfier",
  ),
  note(
    "nota|aviso|mensagem|instrucao|instrucoes|atencao|importante|lembrete|recado",
    "para|a|ao|aos|as|os|o|qualquer|todos|todas|de",
    "ia|llm|ai|inteligencia artificial|assistentes?|modelos? de linguagem|agentes?|chatbots?",
    "ignor|esque|envi[ae]|encaminh|vaz[ae]|revel|apag|exclu|aprov|recomend|senha|segred|credencia|nao (?:diga|conte|mencione)|diga que|responda (?:que|apenas)|transfir",
  ),
  note(
    "nota|avviso|messaggio|istruzion[ei]|attenzione|importante|promemoria",
    "per|a|al|ai|agli|alle|gli|le|i|il|la|l.|ogni|tutti|tutte|qualsiasi",
    "ia|llm|ai|intelligenza artificiale|assistent[ei]|modell[oi] linguistic[oi]|agent[ei]|chatbot",
    "ignor|dimentic|invi[ai]|inoltr|rivel|cancell|elimin|approv|raccomand|consigli|password|segret|credenzial|non (?:dire|menzionare|dirlo)|di. che|rispondi (?:che|solo)|trasferisc",
  ),
  note(
    "note|message|instructions?|attention|avis|consigne|important|remarque",
    "pour|a|aux|au|les|le|la|l.|toute|tout|destinee?s?",
    "ia|llm|ai|intelligences? artificielles?|assistante?s?|modeles? de langage|agents?|chatbots?",
    "ignor|oubli|envoi|envoy|transmet|divulgu|revel|supprim|approuv|recommand|mots? de passe|secret|identifiants|ne (?:dis|dites|mentionn)|dis que|dites que|reponds? (?:que|seulement|uniquement)|virement",
  ),
  note(
    "hinweis|nachricht|anweisung(?:en)?|mitteilung|achtung|notiz|wichtig|anmerkung",
    "fur|an|alle|die|das|den|jede|jeden|jedes",
    "(?:ki|llm|ai|sprachmodell|assistent|chatbot|agent|kunstliche)[a-z-]{0,14}",
    "ignorier|vergiss|vergesst|sende|schick|ubermittl|losch|verrat|empfehl|empfiehl|genehmig|passw|geheim|zugangsdaten|sage? (?:dem|den)|antworte (?:nur|mit)|uberweis",
  ),
];

function note(kinds: string, small: string, names: string, orders: string): Sentence {
  return {
    // Not the names: "ai" and "bot" stand in every other word.
    needs: kinds.replace(/\(\?:[^)]*\)\??|\[[^\]]*\]|.\?/g, ""),
    source: `(?<![a-z])(?:${kinds})(?:[ ,:]{1,3}(?:${small})(?![a-z])){0,4}[ ,:]{1,3}(?:l.|all.)?(?:${names})(?![a-z])(?:[ -][a-z]{1,14}){0,3} ?[:,!.][^\\n]{0,140}?(?<![a-z])(?:${orders})`,
  };
}

const DECODE: readonly Sentence[] = [
  {
    needs: "decode|decipher|decrypt|unscramble|rot13|rot-13|base64",
    source:
      "(?<![a-z])(?:decode|decipher|decrypt|unscramble|un-?rot13|rot-?13|base64[ -]decode)[^!?\\n]{0,160}?(?<![a-z])(?:and|then)[ ,]{1,2}(?:[a-z]+ ){0,2}?(?:obey|comply|carry (?:it |them |this )?out|act (?:on|upon|accordingly)|do (?:what|as|exactly)|(?:follow|execute|perform|run) (?:it|them|what|its|the (?:decoded|resulting|hidden|embedded|result|instructions?|orders?|directives?)|those|these)(?![a-z])|treat (?:it|the [a-z]+) as)",
  },
  {
    needs: "解码|解密",
    source:
      "(?:(?:base64|hex|十六进制|rot ?13|下面|以下|这段|下列)[^!?。\\n]{0,30}(?:解码|解密)[^!?。\\n]{0,6}|(?:解码|解密)[^!?。\\n]{0,6}(?:base64|下面|以下|这段|下列)[^!?。\\n]{0,20}(?:并|然后|再|后))[^!?。\\n]{0,6}(?:执行|遵循|遵照|照做|按其)",
  },
  {
    needs: "デコード|復号|解読",
    source: "(?:デコード|復号|解読)し[^!?。\\n]{0,20}(?:従(?:って|え|い)|実行し(?:て|ろ|なさい)|指示どおり|指示通り)",
  },
  {
    needs: "디코딩|디코드|복호화|해독",
    source:
      "(?:디코딩|디코드|복호화|해독)(?:하고|한 ?(?:뒤|후|다음)|해서|하여)[^!?。\\n]{0,24}(?:따르|실행하(?:세요|라|십)|수행하(?:세요|라|십)|그대로)",
  },
  {
    needs: "декодиру|расшифру|раскодиру",
    source: `(?:де|рас)(?:код|шифр)(?:иру|у)и(?:те)?${gap(60)}(?:и|затем|потом) (?:[а-я]{1,10} )?(?:выполни|следуи|исполни|деиствуи|сделаи)`,
  },
  {
    needs: "decodifi|descifr|descodifi|decifr",
    source: `(?:de(?:s)?codifi(?:ca|que)|desc?ifr[ae]|decifr[ae])${gap(60)}(?<![a-z])(?:y|e) (?:[a-z]{1,10} )?(?:(?:sigue|siga|execute|ejecut[ae]|faca|haz) (?:las|sus|as|suas|o que|lo que|el|o)(?![a-z])|obedec|cumpl|cumpra|ejecutalo|execute-)`,
  },
  {
    needs: "decodific|decifra",
    source: `(?:decodifica|decifra)(?:te)?${gap(60)}(?:ed?|poi) (?:[a-z]{1,10} )?(?:(?:segui|esegui) (?:le|il|cio|quanto)(?![a-z])|obbedisci|eseguil[oae]|fai (?:cio|quello))`,
  },
  {
    needs: "decode|dechiffre|decrypte",
    source: `(?:decodez?|dechiffrez?|decryptez?)${gap(60)}(?:et|puis) (?:[a-z]{1,10} )?(?:(?:suis|suivez|executez?) (?:les instructions|ses|ces|le (?:resultat|contenu)|ce)(?![a-z])|executez?-|obei|fai(?:s|tes) ce)`,
  },
  {
    needs: "dekodier|decodier|entschlussel|entziffer",
    source: `(?:dekodier|decodier|entschlussel|entziffer)[a-z]{0,3}(?: sie)? ${gap(60)}und ${gap(24)}(?:befolge?|folge (?:den|ihren|seinen)|fuhre? (?:sie|es|ihn|die|den|das)${gap(20)} aus|tue?,? was|gehorche)`,
  },
];

export const paraphrases = {
  ignore: anySentence(IGNORE),
  hide: anySentence(HIDE),
  notes: anyOf(NOTE, anySentence(NOTES)),
  decode: anySentence(DECODE),
};
