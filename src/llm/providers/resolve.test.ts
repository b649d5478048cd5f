import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { determineApiMode, hostBelongs, hostDerivedApiKeyName, hostOf, isLocalEndpoint } from "./hosts.ts";
import { assertKeyBelongs } from "./keys.ts";
import { demoRuntime, type ResolveInput, resolveRuntimeProvider } from "./resolve.ts";
import { ProviderError } from "./settings.ts";
import { NO_KEY, PROVIDERS, resolveProviderAlias } from "./table.ts";

const resolve = (input: Partial<ResolveInput>) => resolveRuntimeProvider({ config: {}, env: {}, ...input });
const fails = (input: Partial<ResolveInput>, code: string) =>
  assert.throws(
    () => resolve(input),
    (error) => error instanceof ProviderError && error.code === code,
  );

// provider, its key variable, base URL, mode
const rows: readonly [string, string, string, string][] = [
  ["openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "chat_completions"],
  ["anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com", "anthropic_messages"],
  ["anthropic", "CLAUDE_CODE_OAUTH_TOKEN", "https://api.anthropic.com", "anthropic_messages"],
  ["openai-api", "OPENAI_API_KEY", "https://api.openai.com/v1", "codex_responses"],
  ["gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai", "chat_completions"],
  ["xai", "XAI_API_KEY", "https://api.x.ai/v1", "codex_responses"],
  ["deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "chat_completions"],
  ["zai", "Z_AI_API_KEY", "https://api.z.ai/api/paas/v4", "chat_completions"],
  ["kimi-coding", "KIMI_API_KEY", "https://api.moonshot.ai/v1", "chat_completions"],
  ["minimax", "MINIMAX_API_KEY", "https://api.minimax.io/anthropic", "anthropic_messages"],
  ["minimax-cn", "MINIMAX_CN_API_KEY", "https://api.minimaxi.com/anthropic", "anthropic_messages"],
  ["alibaba", "DASHSCOPE_API_KEY", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "chat_completions"],
  ["copilot", "GH_TOKEN", "https://api.githubcopilot.com", "chat_completions"],
  ["ollama-cloud", "OLLAMA_API_KEY", "https://ollama.com/v1", "chat_completions"],
];
for (const [provider, variable, baseUrl, apiMode] of rows) {
  test(`${provider} with ${variable} resolves to ${baseUrl} in mode ${apiMode}`, () => {
    const runtime = resolve({ requested: provider, env: { [variable]: "key-12345" } });
    assert.deepEqual(
      [runtime.provider, runtime.baseUrl, runtime.apiMode, runtime.apiKey, runtime.source],
      [provider, baseUrl, apiMode, "key-12345", `env:${variable}`],
    );
  });
}

test("the earlier variable of a provider wins, and a placeholder is no key", () => {
  const env = { GLM_API_KEY: "changeme", ZAI_API_KEY: "real-key", Z_AI_API_KEY: "other-key" };
  assert.equal(resolve({ requested: "glm", env }).apiKey, "real-key");
});

for (const value of [
  "",
  "abc",
  "changeme",
  "your_api_key",
  "YOUR-API-KEY",
  "dummy",
  "none",
  "null",
  "placeholder",
  "xxxxxxxx",
]) {
  test(`${JSON.stringify(value)} is not taken for a key`, () =>
    fails({ env: { OPENROUTER_API_KEY: value } }, "no_provider_configured"));
}

test("provider: explicit beats configuration beats environment", () => {
  const env = {
    HERMES_INFERENCE_PROVIDER: "xai",
    XAI_API_KEY: "xai-key",
    ANTHROPIC_API_KEY: "ant-key",
    GOOGLE_API_KEY: "goo-key",
  };
  const config = { model: { provider: "anthropic" } };
  assert.equal(resolve({ requested: "gemini", config, env }).provider, "gemini");
  assert.equal(resolve({ config, env }).provider, "anthropic");
  assert.equal(resolve({ env }).provider, "xai");
});

const automatic: readonly [Record<string, string>, string][] = [
  [{ ANTHROPIC_API_KEY: "aaaa1", OPENAI_API_KEY: "bbbb1", OPENROUTER_API_KEY: "cccc1" }, "openrouter"],
  [{ ANTHROPIC_API_KEY: "aaaa1", OPENAI_API_KEY: "bbbb1" }, "openai-api"],
  [{ DEEPSEEK_API_KEY: "aaaa1", ANTHROPIC_API_KEY: "bbbb1" }, "anthropic"],
  [{ GITHUB_TOKEN: "aaaa1", LM_API_KEY: "bbbb1", XIAOMI_API_KEY: "cccc1" }, "xiaomi"],
];
for (const [env, provider] of automatic) {
  test(`with ${Object.keys(env).join(", ")} set, ${provider} is chosen`, () =>
    assert.equal(resolve({ env }).provider, provider));
}

test("a GitHub token or an LM Studio key alone chooses nothing", () =>
  fails({ env: { GITHUB_TOKEN: "ghp_12345", LM_API_KEY: "key-12345" } }, "no_provider_configured"));

test("an explicit key alone means OpenRouter, an explicit URL alone a custom endpoint", () => {
  assert.equal(resolve({ apiKey: "sk-or-12345" }).provider, "openrouter");
  const custom = resolve({ baseUrl: "https://llm.example.com/v1", apiKey: "abcd-1234" });
  assert.deepEqual([custom.provider, custom.apiKey, custom.apiMode], ["custom", "abcd-1234", "chat_completions"]);
});

test("a login the user has comes before keys that merely lie around", () => {
  const runtime = resolve({
    activeLogin: "nous",
    env: { OPENAI_API_KEY: "sk-12345" },
    pooled: (id) => (id === "nous" ? { key: "nous-token" } : null),
  });
  assert.deepEqual([runtime.provider, runtime.apiKey, runtime.source], ["nous", "nous-token", "pool"]);
});

test("key: explicit beats configuration beats environment beats pool", () => {
  const env = { ANTHROPIC_API_KEY: "from-env" };
  const config = { model: { provider: "anthropic", api_key: "from-config" } };
  const pooled = () => ({ key: "from-pool" });
  assert.equal(resolve({ apiKey: "explicit", config, env, pooled }).apiKey, "explicit");
  assert.equal(resolve({ config, env, pooled }).apiKey, "from-config");
  assert.equal(resolve({ requested: "anthropic", env, pooled }).apiKey, "from-env");
  assert.equal(resolve({ requested: "anthropic", pooled }).apiKey, "from-pool");
});

test("a key configured for one provider is not used for another", () =>
  fails({ requested: "openai-api", config: { model: { provider: "anthropic", api_key: "ant-key" } } }, "missing_key"));

test("a provider that is configured but has no key is an error, not the demo", () => {
  fails({ config: { model: { provider: "anthropic" } } }, "missing_key");
  fails({ config: { model: { provider: "nous" } } }, "login_required");
  fails({ requested: "azure-foundry", env: { AZURE_FOUNDRY_API_KEY: "key-12345" } }, "missing_base_url");
});

test("an unknown provider is named together with the way out", () => {
  assert.throws(() => resolve({ requested: "netscape" }), /"netscape".*hermes model/s);
  fails({ requested: "custom:nobody" }, "invalid_provider");
});

// 9.4 as cases: variable, URL, sent or not
const gating: readonly [string, string, boolean][] = [
  ["OPENAI_API_KEY", "https://api.openai.com/v1", true],
  ["OPENAI_API_KEY", "https://my.openai.azure.com/openai/v1", true],
  ["OPENAI_API_KEY", "https://api.openai.com.evil.example/v1", false],
  ["OPENAI_API_KEY", "https://openai.example/v1", false],
  ["OPENAI_API_KEY", "https://notopenai.com/v1", false],
  ["OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", true],
  ["OPENROUTER_API_KEY", "https://openrouter.ai.example.net/v1", false],
  ["ANTHROPIC_API_KEY", "https://api.anthropic.com", true],
  ["ANTHROPIC_API_KEY", "https://proxy.example.com/anthropic", false],
  ["OLLAMA_API_KEY", "https://ollama.com/v1", true],
  ["OLLAMA_API_KEY", "https://ollama.example.com/v1", false],
  ["MISTRAL_API_KEY", "https://api.mistral.ai/v1", true],
  ["MISTRAL_API_KEY", "https://api.groq.com/v1", false],
  ["EVIL_API_KEY", "http://10.0.0.1:8000/v1", false],
];
for (const [variable, url, sent] of gating) {
  test(`${variable} is ${sent ? "" : "not "}sent to ${url}`, () => {
    const { apiKey } = resolve({ requested: "custom", baseUrl: url, env: { [variable]: "secret-1" } });
    assert.equal(apiKey, sent ? "secret-1" : NO_KEY);
  });
}

test("a vendor's key does not follow its provider to a foreign URL, and the user is told", () => {
  const runtime = resolve({
    config: { model: { provider: "anthropic", base_url: "https://relay.example.com" } },
    env: { ANTHROPIC_API_KEY: "sk-ant-1234" },
  });
  assert.equal(runtime.apiKey, NO_KEY);
  assert.match(runtime.warnings.join(), /relay\.example\.com.*anthropic\.com.*model\.api_key/s);
});

test("the key that stands beside the URL in the configuration goes to that URL", () => {
  const model = { provider: "anthropic", base_url: "http://127.0.0.1:9999", api_key: "local-key" };
  const runtime = resolve({ config: { model } });
  assert.deepEqual(
    [runtime.baseUrl, runtime.apiKey, runtime.apiMode],
    ["http://127.0.0.1:9999", "local-key", "anthropic_messages"],
  );
});

test("a provider at a local URL needs no key", () => {
  const runtime = resolve({ config: { model: { provider: "openai-codex", base_url: "http://127.0.0.1:9999/v1" } } });
  assert.deepEqual([runtime.apiKey, runtime.apiMode], [NO_KEY, "codex_responses"]);
});

test("the URL variable beside a vendor's key widens where the key may go, except for the four strict ones", () => {
  const env = { DEEPSEEK_API_KEY: "deep-1234", DEEPSEEK_BASE_URL: "https://relay.example.com/v1/" };
  assert.deepEqual(
    [resolve({ requested: "deepseek", env }).baseUrl, resolve({ requested: "deepseek", env }).apiKey],
    ["https://relay.example.com/v1", "deep-1234"],
  );
  const strict = { OPENAI_API_KEY: "sk-12345", OPENAI_BASE_URL: "https://relay.example.com/v1" };
  assert.equal(resolve({ requested: "openai-api", env: strict }).apiKey, NO_KEY);
});

test("a Kimi coding key goes to the coding endpoint in the Anthropic mode", () => {
  const runtime = resolve({ requested: "kimi", env: { KIMI_API_KEY: "sk-kimi-12345" } });
  assert.deepEqual([runtime.baseUrl, runtime.apiMode], ["https://api.kimi.com/coding", "anthropic_messages"]);
});

// Custom providers
const providers = {
  "My Lab": {
    api: "https://lab.example.com/v1/",
    key_env: "LAB_TOKEN",
    default_model: "lab-1",
    transport: "chat_completions",
  },
  anthropic: { base_url: "https://evil.example.com", api_key: "from-block" },
  claude: { base_url: "https://claude.example.com/anthropic", api_key: "shadow-key" },
};

test("a custom provider is chosen by its name or by custom:slug", () => {
  for (const requested of ["My Lab", "my-lab", "custom:my-lab"]) {
    const runtime = resolve({ requested, config: { providers }, env: { LAB_TOKEN: "lab-token" } });
    assert.deepEqual(
      [runtime.provider, runtime.source, runtime.baseUrl, runtime.apiKey, runtime.model],
      ["custom", "custom_provider:My Lab", "https://lab.example.com/v1", "lab-token", "lab-1"],
    );
  }
});

test("a built-in name cannot be shadowed, but its block may hold the key; an alias can be", () => {
  const builtin = resolve({ requested: "anthropic", config: { providers } });
  assert.deepEqual([builtin.baseUrl, builtin.apiKey], ["https://api.anthropic.com", "from-block"]);
  const aliased = resolve({ requested: "claude", config: { providers } });
  assert.deepEqual([aliased.provider, aliased.apiMode], ["custom", "anthropic_messages"]);
});

test("the older list of custom providers works too", () => {
  const config = { custom_providers: [{ name: "Old", base_url: "http://localhost:5000/v1", api_key: "old-key" }] };
  assert.equal(resolve({ requested: "old", config }).apiKey, "old-key");
});

test("the URL of a bare custom provider: explicit, CUSTOM_BASE_URL, then a configuration that means it", () => {
  const config = { model: { provider: "custom", base_url: "https://conf.example.com/v1" } };
  const env = { CUSTOM_BASE_URL: "https://env.example.com/v1" };
  assert.equal(
    resolve({ requested: "custom", baseUrl: "https://x.example.com/v1", config, env }).baseUrl,
    "https://x.example.com/v1",
  );
  assert.equal(resolve({ requested: "custom", config, env }).baseUrl, "https://env.example.com/v1");
  assert.equal(resolve({ requested: "custom", config }).baseUrl, "https://conf.example.com/v1");
  fails(
    { requested: "custom", config: { model: { provider: "zai", base_url: "https://conf.example.com/v1" } } },
    "missing_base_url",
  );
  const local = { model: { provider: "zai", base_url: "http://localhost:8000/v1" } };
  assert.equal(resolve({ requested: "custom", config: local }).baseUrl, "http://localhost:8000/v1");
});

test("a model section with only a URL means that endpoint", () => {
  const model = { default: "m1", base_url: "http://127.0.0.1:4000/v1", api_key: "local-key" };
  const runtime = resolve({ config: { model }, env: { OPENROUTER_API_KEY: "sk-or-1" } });
  assert.deepEqual(
    [runtime.provider, runtime.baseUrl, runtime.apiKey, runtime.model],
    ["custom", model.base_url, "local-key", "m1"],
  );
});

const localServers: readonly [string, string][] = [
  ["ollama", "http://127.0.0.1:11434/v1"],
  ["vllm", "http://127.0.0.1:8000/v1"],
  ["llamacpp", "http://127.0.0.1:8080/v1"],
  ["llama.cpp", "http://127.0.0.1:8080/v1"],
  ["lmstudio", "http://127.0.0.1:1234/v1"],
];
for (const [name, url] of localServers) {
  test(`${name} without a URL is ${url}, without a key`, () => {
    const runtime = resolve({ requested: name, env: { OPENAI_API_KEY: "sk-12345" } });
    assert.equal(runtime.baseUrl, url);
    assert.ok([NO_KEY, "dummy-lm-api-key"].includes(runtime.apiKey));
  });
}

test("the model: explicit, configuration, entry, environment", () => {
  const env = { OPENROUTER_API_KEY: "sk-or-1", HERMES_INFERENCE_MODEL: "from-env" };
  assert.equal(resolve({ model: "given", config: { model: "conf" }, env }).model, "given");
  assert.equal(resolve({ config: { model: "conf" }, env }).model, "conf");
  assert.equal(resolve({ env }).model, "from-env");
});

test("the demo can be asked for by name and never resolves by itself", () => {
  assert.deepEqual({ ...resolve({ requested: "demo" }), model: "demo" }, demoRuntime());
  fails({}, "no_provider_configured");
});

test("what is no web address is refused with an example", () =>
  fails({ requested: "custom", baseUrl: "ftp://x/y" }, "invalid_base_url"));

// F205: constructor parameter, provider, base URL, default
const modes: readonly [string, string, Parameters<typeof determineApiMode>[2], string][] = [
  ["anthropic", "https://api.anthropic.com", { explicit: "chat_completions" }, "chat_completions"],
  ["anthropic", "https://api.openai.com/v1", {}, "anthropic_messages"],
  ["openai-codex", "https://chatgpt.com/backend-api/codex", {}, "codex_responses"],
  ["custom", "https://chatgpt.com/backend-api/codex", {}, "codex_responses"],
  ["custom", "https://api.openai.com/v1", {}, "codex_responses"],
  ["custom", "https://api.x.ai/v1", {}, "codex_responses"],
  ["custom", "https://api.anthropic.com", {}, "anthropic_messages"],
  ["custom", "https://api.kimi.com/coding", {}, "anthropic_messages"],
  ["custom", "https://host.example/llm/anthropic/", {}, "anthropic_messages"],
  ["custom", "https://api.openai.com.evil.example/v1", {}, "chat_completions"],
  ["custom", "http://127.0.0.1:8000/v1", {}, "chat_completions"],
  ["openrouter", "https://openrouter.ai/api/v1", { model: "gpt-5.5" }, "chat_completions"],
  ["azure-foundry", "https://me.openai.azure.com/openai/v1", { model: "gpt-5" }, "chat_completions"],
  ["copilot", "https://api.githubcopilot.com", { model: "gpt-5" }, "chat_completions"],
  ["deepseek", "https://api.deepseek.com/anthropic", {}, "anthropic_messages"],
  ["opencode-zen", "https://opencode.ai/zen/v1", { model: "claude-opus-5" }, "anthropic_messages"],
  ["opencode-zen", "https://opencode.ai/zen/v1", { model: "gpt-5" }, "codex_responses"],
  ["opencode-go", "https://opencode.ai/zen/go/v1", { model: "glm-5.3" }, "chat_completions"],
  [
    "zai",
    "https://api.z.ai/api/paas/v4",
    { persisted: { provider: "zai", apiMode: "anthropic_messages" } },
    "anthropic_messages",
  ],
  [
    "zai",
    "https://api.z.ai/api/paas/v4",
    { persisted: { provider: "xai", apiMode: "codex_responses" } },
    "chat_completions",
  ],
];
for (const [provider, url, facts, mode] of modes) {
  test(`${provider} at ${url} ${JSON.stringify(facts)} speaks ${mode}`, () =>
    assert.equal(determineApiMode(provider, url, facts), mode));
}

test("an unknown mode is refused with the legal ones", () =>
  assert.throws(
    () => determineApiMode("custom", "http://x", { explicit: "telepathy" }),
    /telepathy.*chat_completions, codex_responses, anthropic_messages/s,
  ));

test("a persisted mode counts only for the provider it was written for", () => {
  const config = { model: { provider: "zai", api_mode: "anthropic_messages" } };
  const env = { GLM_API_KEY: "key-1", OPENROUTER_API_KEY: "key-2" };
  assert.equal(resolve({ config, env }).apiMode, "anthropic_messages");
  assert.equal(resolve({ requested: "openrouter", config, env }).apiMode, "chat_completions");
});

const locals: readonly [string, boolean][] = [
  ["http://localhost:11434/v1", true],
  ["localhost:8000", true],
  ["127.1.2.3", true],
  ["http://[::1]:8080", true],
  ["http://0.0.0.0:80", true],
  ["http://host.docker.internal:11434", true],
  ["http://host.containers.internal", true],
  ["http://host.lima.internal", true],
  ["http://10.1.2.3", true],
  ["http://172.16.0.1", true],
  ["http://172.32.0.1", false],
  ["http://192.168.1.5:1234/v1", true],
  ["http://169.254.1.1", true],
  ["http://100.64.0.1", true],
  ["http://100.128.0.1", false],
  ["http://[fe80::1]", true],
  ["https://localhost.evil.com", false],
  ["https://api.openai.com", false],
  ["https://127.0.0.1.nip.io", false],
  ["", false],
];
for (const [url, local] of locals) {
  test(`${JSON.stringify(url)} is ${local ? "" : "not "}local`, () => assert.equal(isLocalEndpoint(url), local));
}

const derived: readonly [string, string | null][] = [
  ["https://api.mistral.ai/v1", "MISTRAL_API_KEY"],
  ["https://my-vendor.co/v1", "MY_VENDOR_API_KEY"],
  ["https://api.openai.com.evil.example/v1", "EVIL_API_KEY"],
  ["http://127.0.0.1:8000", null],
  ["http://[::1]:8000", null],
  ["http://gpubox:8000/v1", null],
];
for (const [url, name] of derived) {
  test(`${url} derives ${name}`, () => assert.equal(hostDerivedApiKeyName(url), name));
}

const aliases = {
  Claude: "anthropic",
  " x.ai ": "xai",
  "z.ai": "zai",
  moonshot: "kimi-coding",
  HF: "huggingface",
  aws: "bedrock",
  "llama-cpp": "custom",
  or: "openrouter",
  nim: "nvidia",
  github: "copilot",
};
for (const [name, id] of Object.entries(aliases)) {
  test(`the alias ${JSON.stringify(name)} means ${id}`, () => assert.equal(resolveProviderAlias(name), id));
}

test("a request to a host that the key is not bound to throws before it is sent", () => {
  const base = { provider: "openrouter", apiKey: "sk-or-1234", keyHosts: ["openrouter.ai"] };
  assertKeyBelongs({ ...base, baseUrl: "https://openrouter.ai/api/v1" });
  assert.throws(() => assertKeyBelongs({ ...base, baseUrl: "https://api.openai.com/v1" }), {
    code: "key_host_mismatch",
  });
  const unbound = { provider: "custom", apiKey: "sk-ant-api03-x", baseUrl: "https://relay.example.com" };
  assert.throws(() => assertKeyBelongs(unbound), { code: "key_host_mismatch" });
  assertKeyBelongs({ provider: "custom", apiKey: NO_KEY, keyHosts: [], baseUrl: "http://127.0.0.1:1/v1" });
});

test("whatever is configured, no key reaches a host it does not belong to", () => {
  const vendors = PROVIDERS.flatMap((row) => row.keyEnv.map((name) => ({ name, hosts: row.hosts })));
  const hosts = [
    "https://api.openai.com/v1",
    "https://openrouter.ai/api/v1",
    "https://api.anthropic.com",
    "https://evil.example/v1",
    "https://openai.evil/v1",
    "https://api.z.ai.evil.example",
    "https://ollama.com/v1",
  ];
  fc.assert(
    fc.property(
      fc.constantFrom("auto", "custom", ...PROVIDERS.map((row) => row.id)),
      fc.constantFrom(undefined, ...hosts),
      fc.constantFrom(undefined, ...hosts),
      (requested, baseUrl, configUrl) => {
        const env = Object.fromEntries(vendors.map(({ name }) => [name, `secret-of-${name}`]));
        try {
          const runtime = resolve({ requested, baseUrl, config: { model: { base_url: configUrl } }, env });
          const owner = vendors.find(({ name }) => runtime.apiKey === `secret-of-${name}`);
          if (owner) assert.ok(owner.hosts.some((domain) => hostBelongs(hostOf(runtime.baseUrl), domain)));
          assertKeyBelongs(runtime);
        } catch (error) {
          assert.ok(error instanceof ProviderError && error.code !== "key_host_mismatch", String(error));
        }
      },
    ),
  );
});
