import assert from "node:assert/strict";
import { test } from "node:test";
import { childEnvironment, isSecretName } from "./child-env.ts";

const secret =
  "OPENAI_API_KEY OPENAI_BASE_URL OPENAI_ORGANIZATION OPENROUTER_API_KEY ANTHROPIC_API_KEY ANTHROPIC_TOKEN GOOGLE_API_KEY GEMINI_API_KEY " +
  "DEEPSEEK_API_KEY GROQ_API_KEY MISTRAL_API_KEY XAI_API_KEY FIRECRAWL_API_KEY TAVILY_API_KEY EXA_API_KEY PARALLEL_API_KEY FAL_KEY " +
  "BROWSERBASE_API_KEY TELEGRAM_BOT_TOKEN DISCORD_BOT_TOKEN SLACK_APP_TOKEN EMAIL_PASSWORD HASS_TOKEN MATRIX_ACCESS_TOKEN SIGNAL_ACCOUNT " +
  "GH_TOKEN MODAL_TOKEN_SECRET DAYTONA_API_KEY AWS_BEARER_TOKEN_BEDROCK GOOGLE_APPLICATION_CREDENTIALS SUDO_PASSWORD " +
  "AUXILIARY_VISION_API_KEY AUXILIARY_COMPRESSION_BASE_URL GATEWAY_RELAY_A_SECRET GATEWAY_RELAY_A_KEY GATEWAY_RELAY_A_TOKEN";
const open =
  "PATH HOME LANG AWS_PROFILE SSH_AUTH_SOCK MY_API_KEY EDITOR GOOGLE_CLOUD_PROJECT OPENAI AUXILIARY_X GATEWAY_RELAY_URL";

test("the product's own keys are secret, the user's variables are not", () => {
  for (const name of secret.split(" ")) assert.equal(isSecretName(name), true, name);
  for (const name of open.split(" ")) assert.equal(isSecretName(name), false, name);
});

test("a forced variable arrives under its own name", () => {
  const child = childEnvironment({ PATH: "/usr/bin", OPENAI_API_KEY: "a", _HERMES_FORCE_OPENAI_API_KEY: "b" });
  assert.equal(child.OPENAI_API_KEY, "b");
  assert.ok(!Object.keys(child).some((name) => name.startsWith("_HERMES_FORCE_")));
});

test("what npm left behind when it started us does not reach the user's npm", () => {
  const child = childEnvironment({
    PATH: "/bin",
    npm_config_loglevel: "x",
    npm_lifecycle_event: "start",
    INIT_CWD: "/",
  });
  assert.deepEqual(Object.keys(child), ["PATH"]);
});

test("usual directories are added to PATH after what is there", () => {
  const path = childEnvironment({ PATH: "/mine:/bin" }).PATH ?? "";
  assert.match(path, /^\/mine:\/bin:/);
  assert.equal(path.split(":").filter((directory) => directory === "/bin").length, 1);
  assert.ok(path.split(":").includes("/usr/bin"));
});
