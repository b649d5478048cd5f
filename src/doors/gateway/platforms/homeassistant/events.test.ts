import assert from "node:assert/strict";
import { test } from "node:test";
import { Cooldown, readChange, watchesAnything } from "./events.ts";

const change = (entity: string, from: string | null, to: string | null, attributes = {}) => ({
  event_type: "state_changed",
  data: {
    entity_id: entity,
    old_state: from === null ? null : { state: from, attributes },
    new_state: to === null ? null : { state: to, attributes },
  },
  time_fired: "2026-01-01T10:00:00.000+00:00",
  context: { id: "c1" },
});
const options = (values: Readonly<Record<string, unknown>>) => (key: string) => values[key];

test("a change reads with the name, both states and the unit", () => {
  const attributes = { friendly_name: "Kitchen", unit_of_measurement: "°C" };
  const read = readChange(change("sensor.kitchen", "20", "21", attributes), options({ watch_all: true }));
  assert.deepEqual(read, {
    entity: "sensor.kitchen",
    text: '[Home Assistant] Kitchen (sensor.kitchen) changed from "20 °C" to "21 °C"',
    at: Date.parse("2026-01-01T10:00:00Z"),
    updateId: "sensor.kitchen:c1:2026-01-01T10:00:00.000+00:00",
  });
});

const WATCHED: readonly (readonly [entity: string, settings: Readonly<Record<string, unknown>>, isWatched: boolean])[] =
  [
    ["light.a", {}, false],
    ["light.a", { watch_all: true }, true],
    ["light.a", { watch_all: "yes", ignore_entities: "light.a" }, false],
    ["light.a", { watch_domains: ["light", "climate"] }, true],
    ["light.a", { watch_domains: "climate" }, false],
    ["light.a", { watch_entities: "light.b, light.a" }, true],
    ["lightning.a", { watch_domains: "light" }, false],
  ];

for (const [entity, settings, isWatched] of WATCHED)
  test(`${entity} is ${isWatched ? "" : "not "}watched with ${JSON.stringify(settings)}`, () =>
    assert.equal(readChange(change(entity, "off", "on"), options(settings)) !== null, isWatched));

for (const [from, to] of [
  ["on", "on"],
  ["unavailable", "on"],
  ["on", "unknown"],
  [null, "on"],
  ["on", null],
] as const)
  test(`from ${from} to ${to} nothing has changed`, () =>
    assert.equal(readChange(change("light.a", from, to), options({ watch_all: true })), null));

test("without a filter nothing is watched", () => {
  assert.equal(watchesAnything(options({})), false);
  assert.equal(watchesAnything(options({ watch_domains: "light" })), true);
});

test("an entity is quiet for the time it is given, and others are not", () => {
  const cooldown = new Cooldown();
  assert.equal(cooldown.passes("a", 0, 30), true);
  assert.equal(cooldown.passes("a", 29_999, 30), false);
  assert.equal(cooldown.passes("b", 29_999, 30), true);
  assert.equal(cooldown.passes("a", 30_000, 30), true);
});
