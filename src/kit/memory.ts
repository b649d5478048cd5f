// What long conversations leave behind. V8 collects when its heap has doubled, and lets the part for new objects grow to 48 MB: a talk of short
// turns came to 180 MB of which 25 were in use. A process that rests between turns collects there, where nobody waits.

/** A rest is worth it when so much came together. */
const MUCH_BYTES = 10e6;
/** First the answer is shown. */
const REST_MS = 20;
/** Many a process ends soon after its first answers: that rest would be for nothing. */
const FIRST_REST_MS = 1000;
const FIRST_ANSWERS = 3;

type Collect = (options: {
  readonly type: "major";
  readonly execution: "sync";
  readonly flavor: "last-resort";
}) => void;

let busy = 0;
let resting: NodeJS.Timeout | undefined;
let answers = 0;
let collect: Collect | null = null;
/** What was in use after the last rest. */
let kept = 0;

/** Somebody waits for an answer. Call the result when they have it. */
export function working(): () => void {
  busy++;
  clearTimeout(resting);
  return () => {
    if (--busy > 0) return;
    resting = setTimeout(rest, ++answers > FIRST_ANSWERS ? REST_MS : FIRST_REST_MS).unref();
  };
}

/** Told to the process when all that a start does is done: before its first rest, in which V8 lets go of the code that did it. */
export const STARTED = "hermes:started";
export const tellStarted = () => void (process as NodeJS.EventEmitter).emit(STARTED);

/** Gives back what nothing holds, where it is worth it. */
function rest(): void {
  if (!collect) tellStarted();
  collect ??= collector();
  if (used() < kept + MUCH_BYTES) return;
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
  kept = used();
}

const used = () => process.getBuiltinModule("node:v8").getHeapStatistics().used_heap_size;

/** For a process that waits most of the time, each rest is worth it sooner. */
const SOME_BYTES = 3e6;
/** V8 lets go of the code of functions that ran once, as those of a start did, when so many collections have not seen them run again. */
const COLLECTIONS = 5;
const BETWEEN_MS = 50;

/** Called now and then while nothing is to be done. Does nothing where little came together since the last time. */
export async function restAwhile(): Promise<void> {
  if (!collect) tellStarted();
  collect ??= collector();
  if (used() < kept + SOME_BYTES) return;
  for (let round = 0; round < COLLECTIONS; round++) {
    collect({ type: "major", execution: "sync", flavor: "last-resort" });
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS));
  }
  kept = used();
}

const GROWTH = "--semi-space-growth-factor";

/** To V8's own value: it accepts compiled code only from a process with the flags of the one that asks, and none begins with those of a rest. */
export function undoFlagsOfRests(): void {
  process.getBuiltinModule("node:v8").setFlagsFromString(`${GROWTH}=2`);
}

/** The function exists in contexts that are made while the flag is set. */
function collector(): Collect {
  const { setFlagsFromString } = process.getBuiltinModule("node:v8");
  // New objects that live are few: room for more of them would be taken and never given back.
  setFlagsFromString(`${GROWTH}=1`);
  setFlagsFromString("--expose-gc");
  const found = process.getBuiltinModule("node:vm").runInNewContext("gc") as Collect; // documented in V8's own flags
  setFlagsFromString("--no-expose-gc");
  return found;
}
