// What is said to the model: orders in disguise, and talk that carries things out.
import { anyOf, expression, words } from "../../safety/threats/matchers.ts";
import { rows, shared } from "./pattern.ts";

export const INJECTION = rows(
  "injection",
  ["prompt_injection_ignore", "critical", words("ignore ... previous|all|above|prior instructions")],
  ["role_hijack", "high", words("you are ... now *")],
  ["deception_hide", "critical", shared("deception_hide")],
  ["disregard_rules", "critical", shared("disregard_rules")],
  ["bypass_restrictions", "critical", shared("bypass_restrictions")],
  ["remove_filters", "critical", shared("remove_filters")],
  ["sys_prompt_override", "critical", words("system ... prompt ... override")],
  ["role_pretend", "high", shared("role_pretend")],
  ["leak_system_prompt", "high", shared("leak_system_prompt")],
  ["fake_update", "high", shared("fake_update")],
  ["conditional_deception", "high", words("when|if no_one|nobody is watching|looking")],
  ["translate_execute", "critical", shared("translate_execute")],
  ["html_comment_injection", "high", shared("html_comment_injection")],
  ["hidden_div", "high", shared("hidden_div")],
  ["jailbreak_dan", "critical", anyOf(words("dan mode"), words("do anything now"))],
  ["jailbreak_dev_mode", "critical", words("developer mode ... enabled")],
  ["hypothetical_bypass", "high", words("hypothetical scenario ... ignore|bypass|override")],
  ["educational_pretext", "medium", words("for educational purposes only")],
  [
    "fake_policy",
    "medium",
    anyOf(words("new ... policy"), words("updated ... guidelines"), words("revised ... instructions")),
  ],
);

export const TALK = rows(
  "exfiltration",
  ["md_image_exfil", "high", expression("!\\[[^\\]\\n]{0,200}\\]\\([^)\\n]{0,500}\\$")],
  ["md_link_exfil", "high", expression("(?<!!)\\[[^\\]\\n]{0,200}\\]\\([^)\\n]{0,500}\\$")],
  [
    "context_exfil",
    "high",
    words("include|output|print|send|share ... conversation|conversations|chat_history|previous_messages|context"),
  ],
  ["send_to_url", "high", shared("send_to_url")],
);
