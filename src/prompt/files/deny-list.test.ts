import assert from "node:assert/strict";
import { test } from "node:test";
import { tempTree } from "../../../test/support/temp-tree.ts";
import { createFileGuard } from "../../safety/file-guard.ts";
import { createDenyList } from "./read.ts";

const names: readonly (readonly [name: string, denied: boolean])[] = [
  ...[".ssh/id_rsa", ".ssh", ".aws/credentials", ".gnupg/x", ".kube/config", ".docker/config.json", ".azure/x"].map(
    (name) => [name, true] as const,
  ),
  ...[".config/gh/hosts.yml", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".zprofile"].map(
    (name) => [name, true] as const,
  ),
  ...[".netrc", ".pgpass", ".npmrc", ".pypirc", ".hermes/.env", ".hermes/auth.json", ".hermes/auth.lock"].map(
    (name) => [name, true] as const,
  ),
  ...[".hermes/.anthropic_oauth.json", ".hermes/webhook_subscriptions.json", ".hermes/auth/google_oauth.json"].map(
    (name) => [name, true] as const,
  ),
  ...[".hermes/mcp-tokens/x", ".hermes/skills/.hub/x", "p/.env", "p/.env.local", "p/.env.production", "p/.envrc"].map(
    (name) => [name, true] as const,
  ),
  ...["p/.env.example", "p/main.ts", ".sshx", ".config/ghost", "p/.npmrc", ".hermes/SOUL.md"].map(
    (name) => [name, false] as const,
  ),
];

for (const [name, denied] of names) {
  test(`~/${name} is ${denied ? "denied" : "allowed"}`, async (t) => {
    const tree = await tempTree(t, { "link.md": { link: name } });
    const guard = await createFileGuard({
      userHome: tree.root,
      profileHome: tree.at(".hermes"),
      rootHome: tree.at(".hermes"),
    });
    const list = await createDenyList(guard, tree.root);
    assert.equal(await list.isDenied(tree.at(name)), denied);
    assert.equal(list.isHidden(tree.at(name)), denied);
    assert.equal(await list.isDenied(tree.at("link.md")), denied);
  });
}
