// A clock that several processes share and that runs faster than the real one.
import { type Clock, systemClock } from "../../../src/kit/clock.ts";

export interface FastTime {
  readonly base: number;
  readonly times: number;
}

export const fastClock = ({ base, times }: FastTime): Clock => ({
  now: () => base + (Date.now() - base) * times,
  random: () => Math.random(),
  sleep: (ms, signal) => systemClock.sleep(ms / times, signal),
});
