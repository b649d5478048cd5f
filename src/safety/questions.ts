// What the agent may ask its user, and what comes back. Doors render questions; they never decide.

export type ApprovalChoice = "once" | "session" | "always" | "deny";

export interface ApprovalQuestion {
  readonly kind: "approval";
  readonly command: string;
  /** Why it is asked; also the key under which a lasting answer is kept. */
  readonly description: string;
  readonly patternKey: string;
  readonly allowAlways: boolean;
  /** The file that remembers "always"; config.yaml unless it says otherwise. */
  readonly keptIn?: string;
}

export interface ClarifyQuestion {
  readonly kind: "clarify";
  readonly question: string;
  readonly choices: readonly string[] | null;
  readonly multiSelect: boolean;
}

export interface SudoQuestion {
  readonly kind: "sudo";
}

export interface SecretQuestion {
  readonly kind: "secret";
  readonly name: string;
  readonly prompt: string;
}

export interface ConfirmQuestion {
  readonly kind: "confirm";
  readonly title: string;
  readonly detail: string;
}

export type Question = ApprovalQuestion | ClarifyQuestion | SudoQuestion | SecretQuestion | ConfirmQuestion;

export type AnswerTo<Q extends Question> = Q extends ApprovalQuestion
  ? { readonly choice: ApprovalChoice; readonly reason?: string; readonly timedOut?: boolean }
  : Q extends ConfirmQuestion
    ? { readonly choice: "once" | "always" | "cancel" }
    : /** `null` = cancelled, skipped or timed out. */ { readonly text: string | null };

/** Asks the person at the other end and waits. Resolves to the refusing answer when nobody can be asked, on abort and on timeout. */
export type Ask = <Q extends Question>(question: Q, signal?: AbortSignal) => Promise<AnswerTo<Q>>;
