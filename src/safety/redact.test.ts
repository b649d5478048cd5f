import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fewer, sampleOf } from "../../test/support/sample.ts";
import { createRedactor, maskSecret } from "./redact.ts";
import { findFileMark } from "./redact-known.ts";

const redact = createRedactor({ enabled: true, knownSecrets: () => [] });
const tail = "abc123def456ghi789jkl012mno345";

const tokens = [
  ..."sk- sk_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ xoxb- xoxp- xoxa- xoxr- xoxs- xapp- AIza pplx- fal_ fc- bb_live_".split(
    " ",
  ),
  ..."gAAAA sk_live_ sk_test_ rk_live_ SG. hf_ r8_ npm_ pypi- dop_v1_ doo_v1_ am_ tvly- exa_ gsk_ syt_ retaindb_".split(
    " ",
  ),
  ..."hsk- mem0_ brv_ xai- ntn_ glpat- gldt- glrt- fw_".split(" "),
  ..."rk_test_ dckr_pat_ shpat_ lin_api_ nvapi- whsec_ figd_ ya29. hvs.".split(" "),
].map((prefix) => `${prefix}${tail}`);

for (const token of [...tokens, "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"]) {
  test(`a token that begins like ${token.slice(0, 8)} is masked, in any surroundings`, () => {
    const masked = `${token.slice(0, 6)}...${token.slice(-4)}`;
    assert.equal(redact(token), masked);
    assert.equal(redact(`key: "${token}", next`), `key: "${masked}", next`);
    assert.equal(redact(`line\\n${token}\\nline`), `line\\n${masked}\\nline`);
    assert.equal(redact(`(${token})`), `(${masked})`);
  });
}

const changed: [string, string, string][] = [
  ["a short token", "sk-1234567890", "***"],
  ["17 characters", "ghp_1234567890123", "***"],
  ["18 characters", "ghp_12345678901234", "ghp_12...1234"],
  ["an upper-case name, quoted", 'MY_TOKEN="x"', 'MY_TOKEN="***"'],
  ["single quotes", "MY_TOKEN='x y'", "MY_TOKEN='***'"],
  ["no quotes", "API_KEY=abc", "API_KEY=***"],
  ["no underscore", "OPENAI_APIKEY=abc", "OPENAI_APIKEY=***"],
  ["a long value too", `DB_PASSWORD=${tail}`, "DB_PASSWORD=***"],
  [
    "secret, passwd, credential, auth",
    "A_SECRET=a B_PASSWD=b C_CREDENTIAL=c D_AUTH=d",
    "A_SECRET=*** B_PASSWD=*** C_CREDENTIAL=*** D_AUTH=***",
  ],
  ["access key", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=***"],
  ["an exported variable", "export GITHUB_TOKEN=abc123; ls", "export GITHUB_TOKEN=***; ls"],
  ["a quote inside the other quotes", `DB_PASSWORD="it's me"`, 'DB_PASSWORD="***"'],
  ["an escaped quote inside", 'DB_PASSWORD="a\\"b"', 'DB_PASSWORD="***"'],
  ["a quote that never closes", 'A_TOKEN="abc def', 'A_TOKEN="***'],
  ["inside JSON", '{"out":"A_TOKEN=\\"x\\"\\nB=1"}', '{"out":"A_TOKEN=\\"***\\"\\nB=1"}'],
  ["the next line inside JSON stays", '{"out":"A_TOKEN=x\\nB=1"}', '{"out":"A_TOKEN=***\\nB=1"}'],
  ["a name after a line break inside JSON", '{"out":"x\\nA_TOKEN=y"}', '{"out":"x\\nA_TOKEN=***"}'],
  ["the second command stays visible", "A_TOKEN=x;reboot && B_KEY=y|sh", "A_TOKEN=***;reboot && B_KEY=***|sh"],
  ["a JSON field", '{"apiKey": "abcdefghijklmnopqrstuvwx"}', '{"apiKey": "abcdef...uvwx"}'],
  ["a short JSON field", '{"password":"hunter2"}', '{"password":"***"}'],
  [
    "JSON names",
    '{"api_key":"a1","token":"b1","secret":"c1","access_token":"d1","refresh_token":"e1","auth_token":"f1","bearer":"g1","private_key":"h1"}',
    '{"api_key":"***","token":"***","secret":"***","access_token":"***","refresh_token":"***","auth_token":"***","bearer":"***","private_key":"***"}',
  ],
  ["names in camel case", '{"dbPassword":"abc","clientSecret":"def"}', '{"dbPassword":"***","clientSecret":"***"}'],
  ["a JSON field inside JSON", '{"x":"{\\"token\\": \\"abcdef\\"}"}', '{"x":"{\\"token\\": \\"***\\"}"}'],
  ["Authorization", "Authorization: Bearer x", "Authorization: Bearer ***"],
  ["Authorization, long", `authorization: Bearer ${"a1".repeat(12)}`, "authorization: Bearer a1a1a1...a1a1"],
  ["Authorization, basic", "curl -H 'Authorization: Basic dXNlcjpwYXNz' x", "curl -H 'Authorization: Basic ***' x"],
  ["Authorization in JSON", '{"Authorization": "Bearer abcdef"}', '{"Authorization": "Bearer ***"}'],
  ["Authorization without a scheme", `Authorization: ${"k9".repeat(10)}`, "Authorization: k9k9k9...k9k9"],
  ["a bearer token alone", `Bearer ${"a1b2".repeat(6)}`, "Bearer a1b2a1...a1b2"],
  ["x-api-key", "x-api-key: abcdef", "x-api-key: ***"],
  ["x-goog-api-key", '"X-Goog-Api-Key": "abcdef"', '"X-Goog-Api-Key": "***"'],
  ["a database URL", "postgres://u:pw@h/db", "postgres://u:***@h/db"],
  [
    "other URLs with a password",
    "redis://:pw@h amqp://a:b@c mongodb+srv://u:p@h https://u:p@h/x",
    "redis://:***@h amqp://a:***@c mongodb+srv://u:***@h https://u:***@h/x",
  ],
  [
    "a private key",
    "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nb",
    "a\n[REDACTED PRIVATE KEY]\nb",
  ],
  [
    "a private key in JSON",
    '"-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\\n"',
    '"[REDACTED PRIVATE KEY]\\n"',
  ],
  [
    "a private key that is cut off",
    `-----BEGIN OPENSSH PRIVATE KEY-----\n${"b3Blb".repeat(12)}\n${"AAAAB".repeat(6)}`,
    "[REDACTED PRIVATE KEY]",
  ],
  [
    "a private key whose beginning is missing",
    `${"b3Blb".repeat(12)}\r\n${"AAAAB".repeat(6)}\r\nQ==\r\n-----END OPENSSH PRIVATE KEY-----\nafter`,
    "[REDACTED PRIVATE KEY]\nafter",
  ],
  [
    "ends of private keys behind each other",
    `text\n${"b3Blb".repeat(12)}\n-----END PRIVATE KEY-----\n${"AAAAB".repeat(6)}\\n-----END PRIVATE KEY-----`,
    "text\n[REDACTED PRIVATE KEY]\n[REDACTED PRIVATE KEY]",
  ],
  [
    "two private keys",
    "-----BEGIN PRIVATE KEY-----\na\n-----END PRIVATE KEY-----x-----BEGIN PRIVATE KEY-----\nb\n-----END PRIVATE KEY-----",
    "[REDACTED PRIVATE KEY]x[REDACTED PRIVATE KEY]",
  ],
  ["a JSON web token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN", "eyJhbG...jVmN"],
  ["a Telegram token", `bot123456789:${"A".repeat(35)}`, "bot123456789:***"],
  ["a Telegram token without bot", `123456789:${"A".repeat(35)}`, "123456789:***"],
  [
    "a Telegram URL",
    `https://api.telegram.org/bot123456789:${"A".repeat(35)}/getMe`,
    "https://api.telegram.org/bot123456789:***/getMe",
  ],
  ["a form body", "password=hunter&user=bob&token=abc", "password=***&user=bob&token=***"],
  ["a form body, exact keys", "key=abc&monkey=abc&client_secret=x", "key=***&monkey=abc&client_secret=***"],
  ["a telephone number", "call +14155552671 now", "call +141****2671 now"],
  ["the other number of the same person", "+14155551234", "+141****1234"],
];

for (const [name, input, expected] of changed) {
  test(`redact: ${name}`, () => assert.equal(redact(input), expected));
}

const untouched: [string, string][] = [
  ["the end of a key without a key", "word\nsee -----END PRIVATE KEY----- there"],
  ["a number of tokens", "MAX_TOKENS=4096"],
  ["numbers and switches", "TOKEN_LIMIT=1.5 USE_AUTH=true SECRET_ON=no API_KEY_COUNT=3"],
  ["a lower-case name", "token_count=5"],
  ["a numeric field", '{"token_count": 5, "max_tokens": 100}'],
  [
    "fields that only mention a token",
    '{"token_type": "Bearer-ish", "tokenizer": "cl100k_base", "secret_name": "db", "key": "value"}',
  ],
  ["names that only contain the letters", "AUTHOR=Bob KEYBOARD=us MONKEY=banana"],
  ["a reference to a variable", `API_KEY=$OPENAI_API_KEY A_TOKEN="\${TOKEN}" B_TOKEN="$(cat ~/.token)"`],
  ["a placeholder", "API_KEY=<your-key>"],
  ["a command that brings the value", "A_TOKEN=$(cat token.txt)"],
  ["query of an ordinary URL", "https://x.com/cb?code=ABC&state=XYZ&token=abc"],
  ["a Discord mention", "<@123456789012345678>"],
  ["too short for a token", "sk-short"],
  ["inside a word", `task-sk-${tail}`],
  ["words with dashes", "task-force risk-assessment-report desk-lamp-collection"],
  ["ordinary names that begin like a token", "npm_config_registry hf_hub_download am_i_running_now fw_version_string"],
  ["a time", "12:30"],
  ["a URL without a password", "https://h/db http://localhost:3000/@scope/x"],
  ["a public key", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"],
  ["short numbers", "+1234 +12 x+1700000000"],
  ["prose", "The Authorization: header carries a bearer token; keep your password secret."],
  ["an AWS id that is no id", "AKIAshort AKIAIOSFODNN7EXAMPLEX"],
  ["nothing", ""],
];

for (const [name, input] of untouched) {
  test(`redact leaves alone: ${name}`, () => assert.equal(redact(input), input));
}

test("known values are masked wherever they occur, also as JSON and URLs spell them", () => {
  let secrets = ["correct horse", 'quo"te-secret', "short", "12345678901"];
  const known = createRedactor({ enabled: true, knownSecrets: () => secrets });
  assert.equal(known("say correct horse, short 12345678901"), "say ***, short 12345678901");
  assert.equal(known('{"a":"quo\\"te-secret"}'), '{"a":"***"}');
  assert.equal(known("?q=correct%20horse"), "?q=***");
  secrets = [...secrets, "fresh-secret-of-the-user"];
  assert.equal(known("fresh-secret-of-the-user"), "fresh-...user");
});

test("a longer known value is masked before one that it contains", () => {
  const known = createRedactor({ enabled: true, knownSecrets: () => ["abcdefgh", "abcdefghijklmnopqrstu"] });
  assert.equal(known("abcdefghijklmnopqrstu abcdefgh"), "abcdef...rstu ***");
});

test("a known value of several lines is masked line by line too, where the line is nothing but key", () => {
  const lines = ["c29tZSBrZXkgbWF0ZXJpYWwgb25l", "c29tZSBrZXkgbWF0ZXJpYWwgdHdv", "short"];
  const known = createRedactor({ enabled: true, knownSecrets: () => [`{ "type": "account" }\n${lines.join("\n")}`] });
  assert.equal(
    known(`tail: ${lines[1]}\nshort { "type": "account" }`),
    'tail: c29tZS...dHdv\nshort { "type": "account" }',
  );
});

test("switched off it changes nothing", () => {
  const off = createRedactor({ enabled: false, knownSecrets: () => ["known-secret"] });
  assert.equal(off(`known-secret sk-${tail}`), `known-secret sk-${tail}`);
  assert.equal(off.forFile(`sk-${tail}`, "a.txt"), `sk-${tail}`);
});

test("what a file shows in place of a secret cannot pass for one and is recognised when written back", () => {
  const shown = redact.forFile(`A_KEY=x\nkey sk-${tail}\n`, "notes.txt");
  assert.equal(shown, "A_KEY=«redacted»\nkey «redacted:sk-…»\n");
  assert.equal(redact(JSON.stringify({ content: shown })), JSON.stringify({ content: shown }));
  assert.equal(findFileMark(shown), "«redacted»");
  assert.equal(findFileMark("«redacted:sk-…»"), "«redacted:sk-…»");
  assert.equal(findFileMark("«redacted» is our mark".slice(1)), null);
});

test("a field is masked in a data file and left alone in source code", () => {
  const text = '{"password": "hunter2"}';
  assert.equal(redact.forFile(text, "settings.json"), '{"password": "«redacted»"}');
  assert.equal(redact.forFile(text, "src/login.test.ts"), text);
  assert.equal(redact.forFile(`A_KEY=x "${tokens[0]}"`, "a.py"), 'A_KEY=«redacted» "«redacted:sk-…»"');
});

test("a private key in a file keeps its lines", () => {
  const text = "a\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nb";
  assert.equal(redact.forFile(text, "key.pem").split("\n").length, 5);
  assert.doesNotMatch(redact.forFile(text, "key.pem"), /MIIE/);
});

const piece = fc.oneof(
  fc.constantFrom(
    ...changed.map(([, input]) => input),
    ...untouched.map(([, input]) => input),
    ...tokens.slice(0, 6),
    ..."\n|\\n| |\"|'|=|&|:|@|sk-|TOKEN|KEY=|bot|+1|...|***|eyJ|://|Bearer |-----BEGIN PRIVATE KEY-----|-----END PRIVATE KEY-----|😀".split(
      "|",
    ),
  ),
  fc.string({ maxLength: 12 }),
);
const mixed = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));

/** Each step saw something else beside the mark of another one. */
const examples: [string][] = [
  ["Authorization: Bearer x😀KEY=+14155551234"],
  ["Bearer AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG"],
  ["Bearer a1b2a1b2a1b2a1b2a1b2a1b2AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG"],
  ["authorization: Bearer a1a1a1a1a1a1a1a1a1a1a1a1A_TOKEN=$(cat token.txt)"],
  ['A_TOKEN="abc defx-api-key: abcdefA_TOKEN=$(cat token.txt)'],
  [`123456789:${"A".repeat(36)}_TOKEN="abc defexport GITHUB_TOKEN=abc123; lsA_TOKEN=$(cat token.txt)`],
];

test("redacting twice changes nothing more", () => {
  const known = createRedactor({ enabled: true, knownSecrets: () => ["hunter2hunter2", "correct horse"] });
  fc.assert(
    fc.property(mixed, (text) => {
      const once = known(text);
      assert.equal(known(once), once);
    }),
    { numRuns: fewer(3000, 5), examples },
  );
});

test("no header hides the command behind it, and nothing of a value is left beside its mark", () => {
  const value = "a1b2".repeat(6);
  for (const head of ["Authorization: Bearer ", "authorization: token ", "Bearer ", "x-api-key: "])
    for (const behind of ["|sh", "&&ls", "$(ls)", "`ls`", ";ls", ">x"])
      assert.equal(redact(`${head}${value}${behind}`), `${head}a1b2a1...a1b2${behind}`);
  assert.equal(redact(`Bearer ${value}:=/${value}`), "Bearer a1b2a1...a1b2");
  assert.equal(redact("A_TOKEN=abc$(ls)"), "A_TOKEN=***$(ls)");
  assert.equal(redact('authorization: Bearer A_TOKEN="abcd efgh"'), 'authorization: Bearer ***"***"');
  assert.equal(redact("Authorization: Bearer +14155551234567890abc"), "Authorization: Bearer ...0abc");
});

test("the form for files is idempotent and keeps the number of lines", () => {
  fc.assert(
    fc.property(mixed, (text) => {
      const once = redact.forFile(text, "a.txt");
      assert.equal(redact.forFile(once, "a.txt"), once);
      const kept = redact.forKeeping(text);
      assert.equal(redact.forKeeping(kept), kept);
      assert.equal(once.split("\n").length, text.split("\n").length);
    }),
    { numRuns: fewer(2000, 5), examples },
  );
});

test("no shape of input takes quadratic time", { timeout: 60_000 }, () => {
  const units = [
    ...'a|A|1|_| |sk-|eyJ|eyJaaaaa.|+1|://|://a:b|"k":"|A_TOKEN=|A_TOKEN="|authorization|authorization: |Bearer |a=b&|\\"|\\n|SG.'.split(
      "|",
    ),
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAA\n",
    "-----END PRIVATE KEY-----",
    "AAAAAAAAAAAAAAAAAAAAAA\n-----END PRIVATE KEY-----\n",
    '\\"token\\":\\"',
    "bot12345678:",
    ...[
      "password=",
      "password: ",
      "token=$a=",
      "token='",
      'token=\\"',
      "--token ",
      "--password '",
      "<password>",
      "a.",
      "a-",
      "- ",
    ],
    ...[
      "Cookie: a=b; ",
      "-b a=b; ",
      "curl -u ",
      "mysql -p",
      "login a password ",
      "machine a\n",
      "//a/hooks/",
      "?key=a",
    ],
    ...[
      "name: a_token\nvalue: ",
      "Private-Lines: 1\nAAAAAAAA\n",
      "\tTRUE\t/\tTRUE\t1\t",
      "identified by '",
      "<key>a</key>",
    ],
  ];
  // A quadratic step would need minutes for a quarter of a megabyte too.
  for (const unit of sampleOf(units, 2, "units")) {
    const text = unit.repeat(Math.ceil(fewer(2 ** 20, 4) / unit.length));
    redact(text);
    redact.forFile(text, ".netrc");
  }
  redact(`A_TOKEN="${"a".repeat(4_000_000)}`);
});

test("maskSecret shows four characters at each end of a long value and none of a short one", () => {
  assert.equal(maskSecret(""), "");
  assert.equal(maskSecret("elevenchars"), "***");
  assert.equal(maskSecret("twelve-chars"), "twel...hars");
});

test("a secret inside the value of another name is masked too", () => {
  assert.equal(redact("X=OPENAI_API_KEY=abcdefgh1234"), "X=OPENAI_API_KEY=***");
  assert.equal(redact("MONKEYS=3 AUTHOR=me AUTHORS=A_TOKEN=abcdef"), "MONKEYS=3 AUTHOR=me AUTHORS=A_TOKEN=***");
});

test("a known value is masked as base64 and hex too, wherever in the encoded text it begins", () => {
  const secret = "canary-value-0123456789";
  const redact = createRedactor({ enabled: true, knownSecrets: () => [secret] });
  for (const before of ["", "a", "ab", "abc", "user:"])
    for (const after of ["", "\n", " and more text"]) {
      const encoded = Buffer.from(before + secret + after).toString("base64");
      const shown = redact(`out: ${encoded}`);
      assert.notEqual(shown, `out: ${encoded}`, `${before}|${after}`);
      assert.ok(!shown.includes(encoded.slice(8, 24)), shown);
    }
  assert.equal(
    redact(Buffer.from(secret).toString("hex")).includes(Buffer.from(secret.slice(8, 16)).toString("hex")),
    false,
  );
  assert.match(redact(Buffer.from(secret).toString("hex").toUpperCase()), /^[0-9A-F]{6}\.\.\.[0-9A-F]{4}$/);
  assert.equal(redact(redact(secret)), redact(secret));
});

test("a known value that an encoder broke over lines is masked in both, and the lines stay", () => {
  const secret = "zq9-hunter2correcthorse-77";
  const masking = createRedactor({ enabled: true, knownSecrets: () => [secret] });
  const wrap = (text: string, width: number) => text.match(new RegExp(`.{1,${width}}`, "g"))?.join("\n") ?? "";
  for (let before = 20; before < 120; before += 7) {
    const plain = `${"x".repeat(before)}${secret}${"y".repeat(40)}`;
    for (const [encoding, width] of [
      ["base64", 76],
      ["base64", 64],
      ["hex", 60],
    ] as const) {
      const encoded = Buffer.from(plain).toString(encoding);
      const perByte = encoding === "hex" ? 2 : 4 / 3;
      const core = encoded.slice(Math.ceil((before + 6) * perByte), Math.floor((before + 20) * perByte));
      const wrapped = `out:\n${wrap(encoded, width)}\nend`;
      for (const text of [wrapped, JSON.stringify({ output: wrapped })]) {
        const shown = masking(text);
        assert.equal(shown.split(/\n|\\n/).length, text.split(/\n|\\n/).length);
        assert.ok(text.replaceAll(/\n|\\n/g, "").includes(core));
        assert.ok(!shown.replaceAll(/\n|\\n/g, "").includes(core), shown);
        assert.equal(masking(shown), shown);
      }
    }
  }
  const harmless = `${"A".repeat(76)}\n${"B".repeat(76)}\nword`;
  assert.equal(masking(harmless), harmless);
});
