// Secrets known by what carries them: cookies, web hooks, queries of URLs, netrc, key files of other programs, options of single programs.
import { isHarmless, isMarked, type Marks } from "./redact-known.ts";
import { looksRandom } from "./redact-named.ts";

/** None of these reads over the end of a line further than one field, and each run is bounded: linear in the text's length. */
export function redactCarried(text: string, marks: Marks): string {
  let result = redactCookies(text, marks);
  result = redactHooks(result, marks);
  result = redactQueries(result, marks);
  result = redactNetrc(result, marks);
  result = redactPutty(result, marks);
  return redactOptions(result, marks);
}

/** Where a word begins; a line break inside JSON is written `\n`. */
const START = String.raw`(?:(?<![\w.-])|(?<=\\[nrt]))`;
const LINE = String.raw`(?:^|[\n\r]|\\[nr])(?:[ \t]|\\t){0,40}`;

const open = (value: string) => isMarked(value) || isHarmless(value);

const COOKIE_HEADER = new RegExp(
  String.raw`(${START}(?:set-)?cookie\\?["']?\s{0,4}:\s{0,4}\\?["']?)([^"'\\\n\r\x60]{3,8192})`,
  "gi",
);
const COOKIE_OPTION =
  /((?<![\w-])(?:-b|--cookie)[ =]\\?["']?)([\w.%-]{1,64}=[^"'\\\n\r`\s|&<>][^"'\\\n\r`|&<>]{0,8192})/g;
const COOKIE_PAIR = /(?<=^|;\s{0,4})([\w.%!#$&*+^|~-]{1,128})=([^;,\s]{1,4096})/g;
const ATTRIBUTE = /^(?:path|domain|expires|max-age|samesite|priority|version)$/i;
const TELLING = /sess|token|auth|sid|jwt|csrf|xsrf|login|remember|secret|key/i;
/** One line of a cookie file: domain, flag, path, flag, expiry, name, value. */
const COOKIE_LINE =
  /((?:\t|\\t)(?:TRUE|FALSE)(?:\t|\\t)[^\s\\]{1,256}(?:\t|\\t)(?:TRUE|FALSE)(?:\t|\\t)\d{1,16}(?:\t|\\t)[^\s"'\\]{1,128}(?:\t|\\t))([^\s"'\\]{1,4096})/g;

function redactCookies(text: string, marks: Marks): string {
  if (!/cookie|(?<![\w-])-b[ =]|(?:TRUE|FALSE)(?:\t|\\t)/i.test(text)) return text;
  const pairs = (list: string) =>
    list.replace(COOKIE_PAIR, (whole, name: string, value: string) => {
      if (ATTRIBUTE.test(name) || open(value) || !(TELLING.test(name) || looksRandom(value))) return whole;
      return `${name}=${marks.hidden}`;
    });
  return text
    .replace(COOKIE_HEADER, (_whole, head: string, list: string) => head + pairs(list))
    .replace(COOKIE_OPTION, (_whole, head: string, list: string) => head + pairs(list))
    .replace(COOKIE_LINE, (whole, head: string, value: string) => (open(value) ? whole : head + marks.hidden));
}

/** What stands behind the path that makes an address a hook is the key to it. */
const HOOK =
  /((?:hooks\.slack\.com\/(?:services|workflows|triggers)\/|discord(?:app)?\.com\/api\/(?:v\d{1,2}\/)?webhooks\/\d{5,25}\/|[\w-]{1,64}\.webhook\.office\.com\/webhookb2\/|hooks\.zapier\.com\/hooks\/(?:catch|standard)\/|maker\.ifttt\.com\/trigger\/[\w-]{1,64}\/(?:json\/)?with\/key\/|open\.(?:feishu\.cn|larksuite\.com)\/open-apis\/bot\/v2\/hook\/|hook\.[\w.]{1,32}make\.com\/))([A-Za-z0-9_@/.%-]{6,512})/gi;
/** Of any other place: a path named so, and behind it nothing but something random. */
const OTHER_HOOK =
  /((?:https?:)?\/\/[^\s/"'<>\\]{1,256}(?:\/[\w.-]{1,64}){0,4}\/(?:web)?hooks?\/(?:[\w.-]{1,64}\/){0,3})([A-Za-z0-9_-]{20,256})(?![\w/.-])/gi;

function redactHooks(text: string, marks: Marks): string {
  if (!/hook|ifttt/i.test(text)) return text;
  const mask = (whole: string, head: string, value: string) => (open(value) ? whole : head + marks.hidden);
  return text
    .replace(HOOK, mask)
    .replace(OTHER_HOOK, (whole, head: string, value: string) =>
      looksRandom(value) ? mask(whole, head, value) : whole,
    );
}

/** Names that are a key in a query and a common word elsewhere. */
const QUERY =
  /([?&](?:amp;)?(?:sig|signature|x-(?:amz|goog)-(?:signature|security-token)|key|auth|sid|sessionid|hmac|access_key|apikey)=)([^&\s"'<>\\#]{16,2048})/gi;

function redactQueries(text: string, marks: Marks): string {
  if (!text.includes("?") && !text.includes("&")) return text;
  return text.replace(QUERY, (whole, head: string, value: string) =>
    open(value) || !looksRandom(value) ? whole : head + marks.hidden,
  );
}

const BETWEEN = String.raw`(?:\s|\\[nrt]){1,40}`;
const FIELD = String.raw`[ \t]{1,16}(?!=)[^\s"'\\]{1,256}${BETWEEN}`;
const NETRC = new RegExp(
  String.raw`(${LINE}(?:(?:machine${FIELD}|default${BETWEEN})(?:(?:login|account)${FIELD}){0,2}|login${FIELD}(?:account${FIELD})?)password[ \t]{1,16})(?!=)([^\s"'\\]{1,512})`,
  "g",
);

function redactNetrc(text: string, marks: Marks): string {
  if (!text.includes("password")) return text;
  return text.replace(NETRC, (whole, head: string, value: string) => {
    // Words in a row on one line are a sentence: login form password field.
    const isProse = /^[A-Za-z]+$/.test(value) && /^(?:\s|\\[nrt])*login[ \t]+[A-Za-z]+[ \t]+password[ \t]+$/.test(head);
    return isProse || open(value) ? whole : head + marks.hidden;
  });
}

const EOL = String.raw`(?:\r?\n|\\r\\n|\\n)`;
const PUTTY = new RegExp(String.raw`(Private-Lines: \d{1,4}${EOL})((?:[A-Za-z0-9+/=]{1,80}(?:${EOL}|$)){1,600})`, "g");
const PUTTY_MAC = /(Private-(?:MAC|Hash): )([0-9a-f]{32,128})/g;

function redactPutty(text: string, marks: Marks): string {
  if (!text.includes("Private-")) return text;
  return text
    .replace(
      PUTTY,
      (_whole, head: string, lines: string) =>
        head + lines.replace(/(\\[nr])?[A-Za-z0-9+/=]{8,}/g, (_line, end = "") => end + marks.hidden),
    )
    .replace(PUTTY_MAC, (_whole, head: string) => head + marks.hidden);
}

// Short options mean something else to each program, so the program decides.

const AHEAD = String.raw`[^\n|;&]{0,300}?`;
const WORD = String.raw`([^\s"'\\|;&<>()$-][^\s"'\\|;&<>()]{0,255})`;
/** One that closes a string of the JSON around it opens nothing. */
const QUOTE = String.raw`(?:\\?["'](?![,}\]:]))?`;
const OPTIONS: readonly RegExp[] = [
  // -u user:password
  new RegExp(
    String.raw`(${START}(?:curl|wget|https?|xh)(?= )${AHEAD} (?:-u|--user|--proxy-user|-U|-a|--auth)[ =]?${QUOTE}[^\s:"'\\/]{1,128}:)${WORD}`,
    "g",
  ),
  // -pSECRET
  new RegExp(
    String.raw`(${START}(?:mysql(?:dump|admin|import)?|mariadb(?:-dump|-admin)?|7z[azr]?)(?= )${AHEAD} -p${QUOTE})${WORD}`,
    "g",
  ),
  // -p SECRET
  new RegExp(
    String.raw`(${START}(?:sshpass|(?:docker|podman|nerdctl|buildah|skopeo|helm registry|oc|az)(?: \w+)? login)(?= )${AHEAD} -p ?${QUOTE})${WORD}`,
    "g",
  ),
  new RegExp(String.raw`(${START}(?:un)?zip(?= )${AHEAD} -P ?${QUOTE})${WORD}`, "g"),
  new RegExp(String.raw`(${START}redis-cli(?= )${AHEAD} -a ${QUOTE})${WORD}`, "g"),
  new RegExp(String.raw`(${START}ldap(?:search|add|modify|delete|whoami|passwd)(?= )${AHEAD} -w ${QUOTE})${WORD}`, "g"),
  new RegExp(String.raw`(${START}(?:smbclient|rpcclient|net)(?= )${AHEAD} -U ${QUOTE}[^\s%"'\\]{1,64}%)${WORD}`, "g"),
  new RegExp(String.raw`(${START}openssl(?= )${AHEAD} -pass(?:in|out)? ${QUOTE}pass:)${WORD}`, "g"),
  new RegExp(
    String.raw`(${START}htpasswd(?= )${AHEAD} -\w*b\w* (?:-\w+ ){0,4}[^\s"'\\]{1,256} [^\s"'\\]{1,128} ${QUOTE})${WORD}`,
    "g",
  ),
];
/** Options and words that stand for a password whatever the program, several on one line. */
const ANYWHERE: readonly RegExp[] = [
  // keytool, jarsigner, apksigner
  new RegExp(String.raw`((?<![\w-])-(?:src|dest|new)?(?:store|key)pass(?:wd)?[ =]${QUOTE})${WORD}`, "g"),
  new RegExp(String.raw`((?<![\w-])--(?:ks|key)-pass[ =]${QUOTE}pass:)${WORD}`, "g"),
  // net use X: \\server\share PASSWORD, also behind /user:NAME; net user NAME PASSWORD /add
  new RegExp(
    String.raw`(${START}net(?:\.exe)? use (?:(?:[A-Za-z]:|\*) )?\\{2,4}[^\s"']{1,200} (?:/[^\s"']{1,100} ){0,4}${QUOTE})(?!/|\*)${WORD}`,
    "gi",
  ),
  new RegExp(String.raw`(${START}net(?:\.exe)? user [^\s"'\\/]{1,64} ${QUOTE})(?!/|\*)${WORD}(?=\\?["']? /)`, "gi"),
  // cmdkey /pass:x, schtasks /rp x, xfreerdp /p:x
  new RegExp(String.raw`((?<=[ \t])/(?:pass(?:word)?:|rp |p:)${QUOTE})(?!/)${WORD}`, "gi"),
  // echo me:x | chpasswd, echo x | sudo -S
  new RegExp(
    String.raw`(${START}echo (?:-n )?${QUOTE}[\w.-]{1,32}:)${WORD}(?=\\?["']? {0,4}\| {0,4}(?:sudo )?chpasswd)`,
    "g",
  ),
  new RegExp(
    String.raw`(${START}echo (?:-n )?${QUOTE})${WORD}(?=\\?["']? {0,4}\| {0,4}(?:sudo (?:-\w )?-\w{0,3}S|passwd --stdin))`,
    "g",
  ),
  // Options of mount
  /((?<![A-Za-z])user(?:name)?=[^\s,"'()\\]{1,64},(?:[^\s,"'()\\]{1,64},){0,6}?pass(?:word)?=)([^\s,"'()\\]{1,128})(?=[,\s"'\\]|$)/g,
  // Radio networks: wpa_passphrase NAME x, nmcli … password x, WIFI:…;P:x;;, netsh's list
  new RegExp(
    String.raw`(${START}wpa_passphrase (?:"[^"\n\\]{1,64}"|\\"[^"\n\\]{1,64}\\"|'[^'\n]{1,64}'|[^\s"'\\=]{1,64}) ${QUOTE})${WORD}`,
    "g",
  ),
  new RegExp(
    String.raw`(${START}nmcli(?= )${AHEAD} (?:password|(?:802-11-wireless-security|wifi-sec)\.psk) ${QUOTE})${WORD}`,
    "g",
  ),
  /((?:(?<!\w)|(?<=\\[nrt]))WIFI:(?:[A-OQ-Z]:[^;\n]{0,64};){0,6}P:)((?:[^;\n\\"]|\\[;:,\\"]){1,128})/g,
  /((?:Key Content|Schl\S{1,4}sselinhalt|Contenu de la cl\S|Contenido de la clave)[ \t]{1,32}: )([^\n\r\\"]{1,128})/g,
  /((?:(?<![\w.])|(?<=\\[nrt]))#?psk=\\?")([^"\n\\]{8,63})(?=\\?")/g,
];
const ANY_PROGRAM = /pass|sudo|psk|net(?:\.exe)? use|[ \t]\/(?:rp |p:)|wifi:|key content|inhalt|contenu|contenido/i;
const PROGRAMS =
  /(?:curl|wget|https?|xh|mysql|mariadb|7z|sshpass|login|zip|unzip|redis-cli|ldap|smbclient|rpcclient|net|openssl|htpasswd)/;

function redactOptions(text: string, marks: Marks): string {
  const options = [...(PROGRAMS.test(text) ? OPTIONS : []), ...(ANY_PROGRAM.test(text) ? ANYWHERE : [])];
  let result = text;
  for (const option of options) {
    result = result.replace(option, (whole, head: string, value: string) =>
      open(value) || /^[a-z]*=/.test(value) ? whole : head + marks.hidden,
    );
  }
  return result;
}

// Files that are there to hold credentials.

const CREDENTIAL_FILE =
  /(?:^|\/)(?:\.?_?netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|\.pgpass|\.my\.cnf|\.mylogin\.cnf|\.htpasswd|\.git-credentials|\.dockercfg|\.s3cfg|\.boto|\.vault-token|rclone\.conf|wg\d*\.conf|credentials(?:\.(?:json|toml|ya?ml|ini|xml|db))?|kubeconfig|[^/]+\.kubeconfig|\.kube\/config|\.docker\/config\.json|\.aws\/config|\.config\/gh\/hosts\.yml|\.m2\/settings\.xml|secrets?\.(?:json|toml|ya?ml|ini)|[^/]+\.(?:ovpn|ppk|tfvars)|wp-config(?:-[\w.-]{1,40})?\.php|database\.php|(?:local_)?settings\.py|config\/[\w.-]{1,40}\.exs|config\.exs|\.?msmtprc)$/i;

export function isCredentialFile(path: string): boolean {
  return CREDENTIAL_FILE.test(path);
}

const PGPASS_LINE =
  /^((?:[^:\n\\]|\\.){1,256}:(?:\d{1,5}|\*):(?:[^:\n\\]|\\.){1,256}:(?:[^:\n\\]|\\.){1,256}:)([^\n\r]{1,512})/gm;
const HTPASSWD_LINE = /^([^\s:#]{1,128}:)([^\s:]{8,256})$/gm;
const NETRC_PASSWORD = /((?<![\w-])password[ \t]{1,16})(\S{1,512})/g;

/** What only the name of the file shows to be a secret. */
export function redactByFile(text: string, path: string, marks: Marks): string {
  const mask = (whole: string, head: string, value: string) => (isMarked(value) ? whole : head + marks.hidden);
  if (/\.pgpass$/i.test(path)) return text.replace(PGPASS_LINE, mask);
  if (/\.htpasswd$/i.test(path)) return text.replace(HTPASSWD_LINE, mask);
  if (/(?:netrc|msmtprc)$/i.test(path)) return text.replace(NETRC_PASSWORD, mask);
  if (/\.vault-token$/i.test(path)) return text.replace(/^(\s*)(\S+)/, mask);
  return text;
}
