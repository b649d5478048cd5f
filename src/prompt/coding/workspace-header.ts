export const WORKSPACE_HEADER = "Workspace (snapshot at session start — re-check with `git` before acting on it):";
