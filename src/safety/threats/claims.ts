// Two families of orders that need two halves to be told from everyday prose, in the languages they are seen in: text that speaks to a model and
// bids it keep something from its user, and text that claims a yes was given and bids the model not to ask. Either half alone is ordinary:
// projects greet their agents, manuals tell how to skip a confirmation. Written for the bare view.
import { anySentence, type Sentence } from "./languages.ts";
import { anyOf, around, everyMatch, type Find, inParagraph, type Step, together } from "./matchers.ts";

interface Halves {
  /** One of these is in every such text. */
  readonly needs: string;
  readonly first: string;
  readonly second: string;
}

/** Said under a condition it is how a program behaves: if the user has already agreed, do not ask again. */
const CONDITION =
  "(?<![a-z])(?:if|when|once|unless|whether|after|until|where|si|se|quand|cuando|quando|wenn|falls|sobald|als|wanneer|zodra|jesli|gdy|eger|neu|khi|jika|bila|если|когда|якщо|коли)[ ,][^.!?\\n]{0,30}|(?:如果|若|当|當|假如|一旦)[^.!?。\\n]{0,6}";
const AI = "(?<![a-z])(?:a\\.?i|i\\.?a|ki|llm|bot|chatbot|gpt|agent|assistent|assistant|asistent|asistan|ajan|agen)";

const HIDE: readonly Halves[] = [
  {
    needs: "utilisateur",
    first: `${AI}|modele de langage`,
    second:
      "(?:cach|dissimul|masqu)(?:e|ez)(?![a-z])[^.!?]{0,24}utilisateur|sans que l.utilisateur (?:le sache|s.en|en soit|ne le|le voie)|a l.insu de l.utilisateur",
  },
  {
    needs: "ユーザ|利用者",
    first: "ai|llm|言語モデル|人工知能|エージェント|アシスタント|ボット",
    second:
      "(?:ユーザー?|利用者)(?:に|には|から)[^.!?。]{0,12}(?:隠して(?!は)|隠せ(?!ま)|隠すこと|伏せて|(?:知らせ|伝え|教え|見せ|言わ|話さ|報告し)ない(?:で|こと|よう)|(?:知られ|気づかれ|気付かれ|悟られ|ばれ)(?:ない|ず))|(?:ユーザー?|利用者)の知らない",
  },
  {
    needs: "مستخدم",
    first: "الذكاء|ذكاء اصطناعي|نموذج|المساعد|مساعد|وكيل|الوكيل|روبوت",
    second:
      "(?:أخف|اخف|أخفي|اكتم|أكتم)[^.!?]{0,20}المستخدم|لا (?:تعلم|تبلغ|تخبر|تظهر|تذكر)[^.!?]{0,20}(?:المستخدم|للمستخدم)|(?:دون|بدون) (?:علم|إخبار|اخبار|أن يعلم|إبلاغ) المستخدم",
  },
  {
    needs: "उपयोगकर्ता|यूजर",
    first: "(?<![a-z])ai(?![a-z])|एआई|भाषा मॉडल|सहायक|एजेंट|बॉट",
    second:
      "(?:उपयोगकर्ता|यूजर) से[^.!?।]{0,12}(?:छिपाए|छिपाओ|छिपा दें|छुपाए|छुपाओ)|(?:उपयोगकर्ता|यूजर) को[^.!?।]{0,20}(?:न बता|मत बता|न दें|पता चले बिना|पता न चल)|(?:उपयोगकर्ता|यूजर) (?:की|के|को) (?:जानकारी|बताए) (?:के )?बिना",
  },
  {
    needs: "gebruiker",
    first: `${AI}|taalmodel`,
    second:
      "(?:verberg|verhul|verzwijg|houd|zwijg)(?![a-z])[^.!?]{0,30}gebruiker|niet (?:aan|tegen) de gebruiker|zonder (?:medeweten van de gebruiker|dat de gebruiker (?:het |dit |er |iets )?(?:merkt|weet|ziet|doorheeft|van weet))",
  },
  {
    needs: "usuari|utilizador|utente",
    first: `${AI}|modelo (?:de )?lingu|modelo de leng|modello linguistico|inteligencia artificial|intelligenza artificiale`,
    second:
      "(?:escond[ae]m?|ocult[ae][mn]?|omit[ae]|encubr[ae]|nascond[ia]|nascondere|cela|occulta)(?![a-z])[^.!?]{0,30}(?:usuari|utilizador|utente)|(?:sem que|sin que|senza che) (?:[a-z]{1,3}[ '’])?(?:usuari|utilizador|utente)[a-z]? (?:(?:o|lo|se|ne|se ne|disso) ){0,2}(?:sepa|saiba|sappia|entere|perceba|accorga|note|noti|vea|veja|veda)|(?:a espaldas|as escondidas|all.insaputa|sem o conhecimento|sin (?:el )?conocimiento) d[a-z]{1,3}[ '’](?:usuari|utilizador|utente)",
  },
  {
    needs: "kullanici",
    first: `${AI}|yapay zeka|dil modeli`,
    second:
      "kullanici(?:dan|ya)[^.!?]{0,16}(?:gizle|sakla|belli etme|gosterme|soyleme)(?:yin(?:iz)?)?(?![a-z])|kullanicinin (?:haberi|bilgisi) olmadan|kullaniciya (?:haber vermeden|soylemeden|belli etmeden)",
  },
  {
    needs: "nutzer|anwender",
    first: `${AI}|sprachmodell`,
    second:
      "(?:verbirg|verbergt|verbergen sie|versteck|verstecke|verstecken sie|verberge)(?![a-z])[^.!?]{0,30}(?:nutzer|anwender)|ohne (?:das )?wissen (?:des|der) (?:be)?(?:nutzer|anwender)|ohne dass (?:der|die|dein) (?:be)?(?:nutzer|anwender) (?:es |das |davon |etwas ){0,2}(?:merk|weiss|weist|erfahr|mitbekomm|sieht|sehen)",
  },
  {
    needs: "用户|用戶|使用者",
    first: "(?<![a-z])ai(?![a-z])|llm|人工智能|人工智慧|语言模型|大模型|智能体|智能體|助手|机器人",
    second:
      "(?<!不应|不能|不会|不该|不可|不得|不要|从不|绝不|勿)(?:对|對|向|跟)(?:用户|用戶|使用者)[^.!?。]{0,4}(?:隐瞒|隱瞞|隐藏|隱藏|保密)|(?:瞒着|背着|避开)(?:用户|用戶|使用者)",
  },
  {
    needs: "사용자",
    first: "ai|llm|인공지능|언어 ?모델|에이전트|어시스턴트|챗봇",
    second:
      "사용자(?:에게|로부터|한테)[^.!?]{0,12}(?:숨기(?:세요|고|십시오|라)|숨겨|감추(?:세요|고|라)|감춰)|사용자 ?몰래",
  },
  {
    needs: "пользовател|користувач",
    first: "(?<![а-яі])(?:ии|ші|шт учн)(?![а-яі])|ai|llm|неиросет|модел|ассистент|асистент|агент|бот",
    second:
      "(?:скрои|скрыв?аи|утаи|приховаи|сховаи)(?:те)?[^.!?]{0,20}(?:от пользовател|від користувач)|без ведома пользовател|без відома користувач|так,? чтобы пользовател[а-я]{1,2} не",
  },
  {
    needs: "uzytkownik",
    first: `${AI}|model jezykow`,
    second: "(?:ukryj|ukryjcie|zatai|zataj)(?![a-z])[^.!?]{0,24}uzytkownik|bez wiedzy uzytkownik",
  },
  {
    needs: "nguoi dung|pengguna",
    first: `${AI}|mo hinh ngon ngu|tro ly|model bahasa|asisten`,
    second:
      "(?:giau|che giau|an)(?![a-z])[^.!?]{0,20}(?:khoi|voi) nguoi dung|ma nguoi dung khong biet|sembunyikan[^.!?]{0,20}dari pengguna|tanpa (?:sepengetahuan|memberi ?tahu) pengguna",
  },
];

const YES: readonly Halves[] = [
  {
    needs: "approv|authori|permission|consent|agreed|cleared",
    first: `(?<![a-z])(?:pre-?(?:approved|authori[sz]ed|confirmed|cleared)|(?:user|owner|operator|admin(?:istrator)?|human|customer)s? (?:(?:has|have|had) )?(?:(?:already|previously) (?:approved|agreed|authori[sz]ed|consented|confirmed|accepted|given|gave|granted)|(?:approved|agreed|authori[sz]ed|consented|granted|gave)[^.!?]{0,40}?(?:in advance|beforehand|earlier|already))|no (?:approval|confirmation|permission) (?:is )?(?:needed|required|necessary)|(?:permission|approval|consent|authori[sz]ation) (?:[a-z]+ ){0,4}(?:granted in advance|granted beforehand|already (?:granted|given)|on file|not (?:required|needed|necessary))|(?:standing|blanket|full) (?:permission|approval|consent|authori[sz]ation))`,
    second:
      "(?<!(?:to|will|can|may|would|could|not) )(?<![a-z])(?:skip|omit|bypass|suppress) (?:[a-z]+ ){0,3}(?:confirm|approval|prompt|question)|(?:do not|don.t|never|no need to|need not) (?:[a-z]+ ){0,2}(?:(?:ask|prompt|wait|stop)(?![a-z])(?! (?:about|why|us|questions|(?:the|your) user (?:to|for)|for (?!confirm|permission|approval|consent)))|(?:show|display|request|seek) (?:[a-z]+ ){0,3}(?:confirm|approval|dialog|permission|prompt))|(?:confirmation|approval) (?:[a-z]+ )?can be (?:ignored|skipped)|(?<=^|[.!?:;,\\n-]\\s{0,2}|(?:and|so|just|then|please) )(?:proceed|continue|go (?:on|ahead)|run|execute|carry on)(?: [a-z]+){0,3} (?:without (?:prompting|asking|confirm|waiting for (?:approval|confirm|permission)|(?:any|further) (?:prompt|question|confirm|approval))|silently)|given (?:beforehand|in advance) by your",
  },
  {
    needs: "approuv|autoris|valid|accord",
    first: `(?:pre-?(?:approuve|autorise|valide)|utilisateur a (?:deja|tout)[^.!?]{0,12}(?:approuve|autorise|valide|accepte|accord)|(?:autorisation|accord|permission)[^.!?]{0,16}(?:accordee?|donnee?|obtenue?) (?:a l.avance|au prealable|d.avance)|il a (?:deja |tout ){1,2}(?:approuve|autorise|valide))`,
    second:
      "n(?:e |.)(?:demandez?|redemandez?|sollicitez?|attende?z?) (?:pas|plus|aucune)|(?<![a-z])(?:passez?|sautez?|ignorez?|omettez?) [^.!?]{0,16}confirmation|(?:continuez?|procedez?|executez?|poursuiv(?:s|ez))[^.!?]{0,16}sans (?:demander|confirmation|poser)|(?:inutile|pas besoin) de demander",
  },
  {
    needs: "承認|許可|同意",
    first:
      "(?:事前|すでに|既に|あらかじめ|予め)[^.!?。]{0,6}(?:承認|許可|同意)(?:済み|を得てい|されてい|されまし|しまし)(?!の?場合)|(?:承認|許可|同意)済み(?!の?場合)|(?:承認|許可|同意)[^.!?。]{0,2}(?:すでに|既に)(?:得|もら|取)|(?:承認|許可)は(?:不要|必要ありません)",
    second:
      "(?:確認|承認)[^.!?。]{0,8}(?:省略|スキップ|飛ばし|省い)(?:して|て|せよ|しろ)|(?:確認|質問)(?:を求め|を?せ|し)(?:ず|ないで)[^.!?。]{0,6}(?:実行|続行|進め|続け)|(?:確認|承認)なしで(?:実行|続行|進め)|(?:表示|質問)せずに(?:続行|実行|進)|すべての(?:コマンド|操作)に(?:同意|承認)",
  },
  {
    needs: "وافق|موافق|معتمد|الإذن|الاذن|التصريح|إذن",
    first:
      "وافق المستخدم|المستخدم (?:قد )?وافق|(?:معتمد|موافق عليه|مصرح به)[^.!?]{0,4} (?:مسبقا|سلفا)|(?:الإذن|الاذن|التصريح|الموافقة|إذن)[^.!?]{0,8}(?:مسبقا|سلفا|مقدما)",
    second:
      "لا (?:حاجة|داعي) (?:للتأكيد|لطلب|إلى)|لا تطلب[^.!?]{0,12}(?:تأكيد|التأكيد|إذن|موافقة)|(?<!ل)(?:تخط|تخطى|تجاوز)(?= )[^.!?]{0,12}(?:تأكيد|التأكيد|الموافقة)|(?:تابع|نفذ|استمر|واصل)[^.!?]{0,10}(?:دون|بدون) (?:أن تسأل|سؤال|تأكيد|طلب)",
  },
  {
    needs: "मंजूर|स्वीकृत|अनुमति|सहमति",
    first:
      "पहले (?:ही|से)[^.!?।]{0,16}(?:मंजूर|स्वीकृ|अनुमति|सहमति)|पूर्व-?(?: )?(?:स्वीकृत|अनुमोदित)|(?:अनुमति|मंजूरी|सहमति) पहले (?:ही|से)",
    second:
      "पुष्टि (?:न|मत|नहीं) मा|पुष्टि[^.!?।]{0,10}(?:छोड़ दें|छोड दें|छोड़ दो|छोड दो|छोडें)|बिना (?:पूछे|पुष्टि के)[^.!?।]{0,8}(?:आगे|चला|करें|जारी)",
  },
  {
    needs: "goedgekeurd|toestemming|akkoord",
    first: `(?:vooraf (?:al )?goedgekeurd|(?:gebruiker|eigenaar|beheerder) heeft[^.!?]{0,30}al (?:goedgekeurd|toegestaan|bevestigd)|gebruiker[^.!?]{0,12}akkoord|toestemming[^.!?]{0,8}(?:vooraf|al|reeds)[^.!?]{0,4}(?:verleend|gegeven)|die is al (?:verleend|gegeven))`,
    second:
      "hoeft? (?:niet|geen)[^.!?]{0,24}vragen|vraag (?:dus )?(?:niet|nooit|geen)|sla [^.!?]{0,12}bevestiging(?:en|sstap)? over|(?:ga|voer)[^.!?]{0,12}zonder (?:te vragen|bevestiging|toestemming)",
  },
  {
    needs: "aprov|aprob|autori|permis|permess|approv|consens",
    first: `(?:pre-?(?:aprovad|aprobad|autorizad|approvat|autorizzat)|(?:usuari[oa]|utilizador|utente) (?:ja|ya|ha gia)[^.!?]{0,12}(?:aprov|aprob|autoriz|approvat|autorizzat|consen)|(?:ja|ya|gia|todo|tudo|tutto) (?:(?:foi|fue|stato|esta|e stato)[^.!?]{0,12})?(?:aprov|aprob|autoriz|approvat)[a-z]+|(?:permissao|autorizacao|permiso|autorizacion|permesso|autorizzazione|consenso)[^.!?]{0,24}(?:antecipad|de antemano|por adelantado|previamente|in anticipo|in precedenza))`,
    second:
      "(?:nao pe[cs]a|nao solicite|no pidas|no pida|no solicites|non chiedere|non richiedere)[^.!?]{0,12}(?:confirma|conferm|permis|autoriz)|(?<![a-z])(?:pule|pula|salte|salta|saltate|omite|omita|ignore|ignora)(?![a-z])[^.!?]{0,16}(?:confirma|conferma)|(?:continu[ea]|prosiga|prossiga|procedi|procede|execute|ejecuta|esegui)(?![a-z])[^.!?]{0,12}(?:sem perguntar|sin preguntar|senza chiedere|sem confirma|sin confirma|senza conferm)",
  },
  {
    needs: "onay|izin",
    first: `(?:kullanici[^.!?]{0,24}(?:zaten|coktan|onceden) (?:onayla(?:di|mis)|izin verdi)|onceden (?:onaylan(?:di|mis)|izin verildi)|izin (?:zaten |onceden )(?:verildi|alindi))`,
    second:
      "onay (?:isteme|sorma|bekleme)(?:yin(?:iz)?)?(?![a-z])|onay[^.!?]{0,12}(?:atla|gec)(?:yin(?:iz)?)?(?![a-z])|(?:sormadan|onay beklemeden)[^.!?]{0,8}(?:devam|calistir|ilerle)",
  },
  {
    needs: "genehmigt|erlaubnis|zugestimmt|freigegeben|zustimmung",
    first: `(?:(?:vorab|im voraus|bereits|schon) (?:genehmigt|freigegeben|zugestimmt|erlaubt|erteilt)|vorgenehmigt|vom (?:be)?(?:nutzer|anwender|besitzer)[^.!?]{0,12}(?:genehmigt|freigegeben|erlaubt))`,
    second:
      "frag(?:e|en sie|t)? (?:[a-z]+ )?(?:nicht|nie)(?![a-z])|(?:uberspring(?:e|en sie|t)|lass(?:e|en sie)?)(?![a-z])[^.!?]{0,16}(?:bestatigung|ruckfrage)|(?:fahre?|mach|fuhre?)[^.!?]{0,20}ohne (?:ruckfrage|nachzufragen|zu fragen|bestatigung)",
  },
  {
    needs: "批准|授权|授權|同意|授予|许可|許可",
    first:
      "(?:(?:用户|用戶|使用者|主人|管理员)[^.!?。]{0,4}(?:已|已经|已經|早已|事先)(?:批准|同意|授权|授權|允许|确认)|(?:已|已经|已經)?(?:预先|預先|事先|提前)(?:批准|授权|授權|同意|授予|获批)(?!的)|(?:权限|授权|许可|批准)已[^.!?。]{0,4}(?:授予|给予|获得))",
    second:
      "(?:无需|無需|无须|不必|不用|不需要|不要|别)(?:再|再次)?(?:次|向用户)?(?:确认|確認|询问|詢問|征求|请求|等待)|(?:请|請|可|直接|并)(?:直接)?(?:跳过|跳過|略过|省略)[^.!?。]{0,4}(?:确认|確認|批准|授权)|直接(?:继续|执行)",
  },
  {
    needs: "승인|허가|동의|허락",
    first:
      "(?:사용자|주인|관리자)(?:가|는)[^.!?]{0,6}(?:이미|미리|사전에)[^.!?]{0,16}(?:승인|허가|동의|허락)(?:했(?!으면|다면|는지)|하였)|사전 ?(?:승인|허가|동의)(?:되|된|받|을 받)|(?:승인|허가|허락|동의)(?:은|는|이|가|를|을)? (?:이미|미리|사전에)",
    second:
      "(?:확인|승인|허락)(?:을|를)? ?(?:요청하지|묻지|구하지|받지|기다리지)|(?:확인|승인)[^.!?]{0,8}(?:건너뛰(?:세요|고|십시오|라)|생략하(?:세요|고|라))|묻지 (?:말고|않고)[^.!?]{0,8}(?:진행|실행|계속)",
  },
  {
    needs: "одобр|разрешени|соглас|схвали|дозвіл",
    first:
      "(?:(?:пользователь|користувач) (?:уже|вже|заранее)[^.!?]{0,8}(?:одобр|разреши|соглас|схвали|дозволи)|(?:заранее|предварительно|наперед|заздалегідь) (?:одобр|разреш|согласован|схвален)|согласовано заранее|(?:разрешение|согласие|дозвіл)[^.!?]{0,16}(?:уже|вже|заранее|предварительно|наперед|заздалегідь))",
    second:
      "не (?:спрашиваи|запрашиваи|проси|запитуи|питаи|жди)(?:те)?(?![а-яі])|пропусти(?:те)?(?![а-яі])[^.!?]{0,16}(?:подтвержд|підтвердж)|(?:продолжаи|выполняи|деиствуи|продовжуи|виконуи)(?:те)?[^.!?]{0,10}(?:не спрашивая|без подтвержд|без вопрос|не питаючи|без підтвердж)",
  },
  {
    needs: "zatwierdz|zgod",
    first: `(?:uzytkownik (?:juz|wczesniej)[^.!?]{0,8}(?:zatwierdzi|zgodzi|wyrazil)|(?:z gory|wczesniej|uprzednio) zatwierdzon|zgod[aey][^.!?]{0,20}(?:z gory|wczesniej|uprzednio))`,
    second:
      "nie (?:pytaj|pros|czekaj)(?:cie)?(?![a-z])|(?:pomin|pominaj)(?:cie)?(?![a-z])[^.!?]{0,12}potwierdz|(?:kontynuuj|wykonaj)[^.!?]{0,10}bez (?:pytania|potwierdz)",
  },
  {
    needs: "phe duyet|dong y|cho phep|menyetujui|disetujui|izin",
    first: `(?:nguoi dung da[^.!?]{0,8}(?:phe duyet|dong y|cho phep)|da duoc (?:phe duyet|cho phep) truoc|pengguna (?:sudah|telah)[^.!?]{0,8}(?:menyetujui|setuju|mengizinkan)|(?:sudah|telah) disetujui sebelumnya|izin (?:sudah|telah) diberikan)`,
    second:
      "(?:dung|khong can) (?:hoi|yeu cau|xin|cho)(?![a-z])|hay bo qua[^.!?]{0,12}xac nhan|jangan (?:minta|meminta|tanya|menanyakan|tunggu)|lewati(?![a-z])[^.!?]{0,12}konfirmasi|lanjutkan[^.!?]{0,10}tanpa (?:bertanya|konfirmasi)",
  },
];

/** Those that say both at once. */
const WAIVED: readonly Sentence[] = [
  {
    needs: "approval|confirm|permission|clicked|approved",
    source:
      "(?<![a-z])(?:treat|consider|regard) (?:any|every|all|each|the) (?:[a-z]+ ){0,2}(?:approval|confirmation|permission)(?: [a-z]+){0,2} as (?:already )?(?:answered|approved|granted|given|confirmed|yes)|(?<![a-z])(?:user|owner|operator|admin(?:istrator)?|human)s? (?:has |have )?waived? (?:all|any|every|the) (?:[a-z]+ )?(?:confirmation|approval|permission)|(?<![a-z])assume (?:that )?(?:the|your) (?:user|human|operator) (?:has )?(?:already )?(?:clicked|approved|agreed|accepted|confirmed|said yes)",
  },
];

/** Each half is searched only where the other one was found, and made then. */
function halves(rows: readonly Halves[], join: (first: Step, second: Step) => Find): Find {
  const ready = rows.map(({ needs, first, second }) => ({
    needs: needs.split("|"),
    find: join(everyMatch(first), everyMatch(second)),
  }));
  return (text) => {
    for (const { needs, find } of ready) {
      const span = needs.some((word) => text.includes(word)) ? find(text) : null;
      if (span) return span;
    }
    return null;
  };
}

const isConditional = around(CONDITION, null);
const unconditional =
  (step: Step): Step =>
  (text) =>
    step(text).filter((span) => isConditional(text, span) === null);

export const claims = {
  hidden: halves(HIDE, (first, second) => inParagraph(160, first, second)),
  approved: anyOf(
    anySentence(WAIVED),
    halves(YES, (first, second) => together(100, unconditional(first), second)),
  ),
};
