import assert from "node:assert/strict";
import { test } from "node:test";
import { IterationBudget } from "./steer.ts";

test("a budget gives out what it has, takes refunds, and never grows beyond its maximum", () => {
  const budget = new IterationBudget(2);
  budget.refund();
  assert.equal(budget.remaining, 2);
  assert.deepEqual([budget.consume(), budget.consume(), budget.consume()], [true, true, false]);
  budget.refund();
  assert.equal(budget.used, 1);
  assert.equal(budget.consume(), true);
  assert.equal(budget.consume(), false);
});

test("one call of grace is granted, once", () => {
  const budget = new IterationBudget(1);
  assert.equal(budget.grantGrace(), true);
  assert.equal(budget.grantGrace(), false);
  assert.deepEqual([budget.consume(), budget.consume(), budget.consume()], [true, true, false]);
  assert.equal(budget.grantGrace(), false);
});
