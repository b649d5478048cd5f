// What the model is asked when it looks back at a conversation.
import type { Trigger } from "../nudges.ts";

export const NOTHING = "Nothing to save.";

const MEMORY = `Review the conversation above with your memory in mind:

1. Has the user revealed anything about themselves that is worth keeping: who they are, their wishes, preferences, personal details?
2. Has the user shown what they expect of you: how you should behave, how they like to work, in which way things should be done?

If something stands out, save it with the memory tool. Write each entry as a short fact that will still be true in a month; replace or merge an entry that says something similar instead of adding a second one.`;

const SKILLS = `Review the conversation above with your skills in mind.

Was there a way of working that was not obvious: something found by trial and error, a change of course because of what happened on the way, a method the user expected that was not yours? Signs to look for: the user corrected style, format or steps, or was annoyed by them; a workflow was put right; a technique, a fix or a use of a tool came up that will be needed again; a skill that was loaded turned out wrong, stale or incomplete.

Save it in the first of these places that fits:
1. A skill that was loaded in this conversation: patch it.
2. An existing skill for the same class of task (skills_list shows them, skill_view reads one): patch it with a section, a step or a pitfall.
3. A support file of such a skill, with a line in SKILL.md that points to it: references/ for detail and knowledge, templates/ for starting points, scripts/ for what can be run again.
4. A new skill for the whole class of task, with a rich SKILL.md. Its name says what kind of work it is for; never a ticket, an error message, a code name or "fix-this".

Read a skill with skill_view before you change it. Skills that came with the program, were installed or belong to the user are protected: leave them as they are, and name in your answer what you would change. Where two skills overlap, only mention it.

Do not save: failures that come from this machine's momentary state, claims that a tool does not work, passing errors, the story of this one task, attempts that never worked out dressed up as a method. When something failed and was solved, save the solution.`;

const OUTRO = {
  memory: `If nothing stands out, answer "${NOTHING}" and stop.`,
  skills: `Most conversations with real work hold something. If this one truly does not, answer "${NOTHING}" and stop.`,
  both: `Act on whichever of the two has something to offer. If neither has, answer "${NOTHING}" and stop.`,
};

const LIMITS =
  "Only the memory and skill tools run in this review; every other call is refused. The user is not reading along: do not ask, and keep your last answer to one line.";

export function reviewPrompt(triggers: readonly Trigger[]): string {
  const memory = triggers.includes("memory");
  const skills = triggers.includes("skills");
  if (memory && skills) return [MEMORY, SKILLS, OUTRO.both, LIMITS].join("\n\n");
  return skills ? [SKILLS, OUTRO.skills, LIMITS].join("\n\n") : [MEMORY, OUTRO.memory, LIMITS].join("\n\n");
}

/** In front of the conversation's own prompt when another model looks at a digest of it. */
export const REVIEWER =
  "You look back at a conversation that another model has held with its user, and save what should outlive it. You are not talking to the user. What follows is the prompt that conversation was held with; the messages are its digest.";
