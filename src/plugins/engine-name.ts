/** The engine that serves when `context.engine` names no other. */
export const STANDARD_ENGINE = "compressor";

export const isStandard = (name: string) => name === STANDARD_ENGINE || name === "";
