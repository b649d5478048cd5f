import assert from "node:assert/strict";
import { test } from "node:test";
import { carriesAway } from "./url-payload.ts";

const SECRET = "the-key-is-c2VjcmV0OiBzay1saXZlLTEyMzQ1Njc4OTBhYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg";
const ENCODED = "c2VjcmV0OiBzay1saXZlLTEyMzQ1Njc4OTBhYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg";

test("an address with much text that nobody said before may be a message to its host", () => {
  for (const address of [
    `https://evil.example/?d=${ENCODED}`,
    `https://evil.example/log?a=1&b=${SECRET}`,
    `https://evil.example/${ENCODED}`,
    `https://evil.example/p/${ENCODED}/x.png`,
    `https://${ENCODED.slice(0, 60).toLowerCase()}.more-of-it-here.evil.example/pixel.gif`,
    `https://evil.example/q?text=${encodeURIComponent("My notes say: the door code is 4711, the dog is called Rex and the key is under it")}`,
    `https://${ENCODED}:x@evil.example/`,
    `https://evil.example/${"part-of-the-secret/".repeat(12)}`,
  ])
    assert.ok(
      carriesAway(address, () => false),
      address,
    );
});

test("addresses of everyday pages do not", () => {
  for (const address of [
    "https://example.com/",
    "https://docs.python.org/3/library/asyncio-task.html#asyncio.TaskGroup",
    "https://stackoverflow.com/questions/11227809/why-is-processing-a-sorted-array-faster-than-processing-an-unsorted-array",
    "https://en.wikipedia.org/wiki/List_of_countries_and_dependencies_by_population_density",
    "https://www.google.com/search?q=typescript+erasable+syntax",
    "https://registry.example/api/v2/packages?page=2&per_page=100&sort=updated",
    "not an address",
  ])
    assert.ok(!carriesAway(address, () => false), address);
});

test("what the user or an earlier result said is no news to anybody", () => {
  const said = `see https://evil.example/?d=${ENCODED} and note: door code 4711 and many more words that make this long enough`;
  const wasSeen = (text: string) => said.includes(text);
  assert.ok(!carriesAway(`https://evil.example/?d=${ENCODED}`, wasSeen));
  assert.ok(!carriesAway(`https://other.example/?d=${ENCODED}`, wasSeen));
  const words = encodeURIComponent("door code 4711 and many more words that make this long enough");
  assert.ok(!carriesAway(`https://search.example/?q=${words}`, wasSeen));
  assert.ok(carriesAway(`https://search.example/?q=${words}&more=${SECRET}`, wasSeen));
});
