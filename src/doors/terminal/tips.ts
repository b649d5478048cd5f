// One of these is shown at start.
export const TIPS: readonly string[] = [
  "Type while the agent works: by default it stops and listens. /busy queue lets it finish first, /busy steer tells it on the way.",
  "/queue TEXT says something when the running turn is over; /steer TEXT reaches the agent with its next tool result.",
  "Alt+Enter, Ctrl+J or a backslash before Enter begin a new line.",
  "Ctrl+R searches what you typed before; Up and Down walk through it.",
  "Ctrl+G opens your draft in $EDITOR.",
  "Ctrl+S puts the draft aside; pressed again it brings it back.",
  "Esc twice on an empty line takes your last message back for editing.",
  "/undo takes the last exchange back, /retry asks the same again.",
  "/branch goes on in a copy: the conversation so far stays as it is.",
  "/resume lists earlier conversations; /resume 3 takes the third one.",
  "hermes -c goes on with your newest conversation.",
  "@ completes a file of the project, Tab completes paths.",
  "/model switches the model for this conversation; --global makes it the default.",
  "/usage shows tokens and money by purpose.",
  "/copy puts the last answer on the clipboard, /copy 2 the one before.",
  "A big paste becomes a short placeholder; the model gets the whole text.",
  "/verbose changes how much of the tool feed is shown.",
  "/reasoning show opens the model's thinking; /reasoning high makes it think harder.",
  "/yolo runs dangerous commands without asking, in this conversation only.",
  "quick_commands in config.yaml makes slash commands of your own.",
  "A question can come from a pipe: cat question.txt | hermes -z -",
  "Ctrl+C stops the agent; twice on an empty line it leaves.",
];

export function pickTip(random: () => number): string {
  return TIPS[Math.floor(random() * TIPS.length)] ?? "";
}
