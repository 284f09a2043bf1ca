//! The messages that the model reads. Each has a fixed id, and changes only when its text does, so that the beginning
//! of the requests stays the same.

use std::collections::BTreeMap;

use goondan::conversation::{MessageRef, Part, ToolOutput};
use goondan::prelude::*;

use crate::discovery::{Found, Skill};

// The names of the tools that are of no use without skills.
pub(crate) const OPEN: &str = "skills__open";
pub(crate) const CLOSE: &str = "skills__close";
pub(crate) const RUN: &str = "skills__run";

/// With what the ids of all messages of the extension begin.
const OURS: &str = "skills:";

/// The messages that a conversation should have: texts by id.
#[derive(Debug, Default)]
pub(crate) struct Context {
    messages: BTreeMap<String, String>,
    /// The names of open skills.
    open: Vec<String>,
}

impl Context {
    /// Lists the skills, if there are any.
    // PATTERN-SKILL-12
    pub(crate) fn list(&mut self, found: &Found) {
        if found.skills.is_empty() {
            return;
        }
        let mut text = format!(
            "There are skills: instructions for certain tasks. When a task fits the description of one, \
             open it with `{OPEN}` before you begin."
        );
        for (name, Skill { description, .. }) in found.in_order() {
            text.push_str(&format!("\n- {name}: {description}"));
        }
        self.messages.insert(format!("{OURS}catalog"), text);
    }

    /// Adds the instructions of an open skill.
    // PATTERN-SKILL-05, PATTERN-SKILL-13
    pub(crate) fn open(&mut self, name: &str, skill: &Skill, content: &str) {
        let text = format!("The skill `{name}` is open. Its files are in {}.\n\n{content}", skill.dir.display());
        self.messages.insert(format!("{OURS}open:{name}"), text);
        self.open.push(name.to_owned());
    }

    /// Hides the tools that need skills, if there are no messages: there are no skills then.
    pub(crate) fn hide_tools(&self, ctx: &mut StepContext<'_>) {
        if self.messages.is_empty() {
            ctx.tool_catalog_mut().retain(|tool| ![OPEN, CLOSE, RUN].contains(&tool.name.as_str()));
        }
    }

    /// Makes the messages of the extension be these. If they are, no event is emitted.
    // PATTERN-SKILL-01
    pub(crate) fn show(mut self, ctx: &mut StepContext<'_>) {
        self.hide_tools(ctx);
        let mut events = Vec::new();
        for message in ctx.conversation().iter().filter(|message| message.id().starts_with(OURS)) {
            match self.messages.remove_entry(message.id()) {
                None => events.push(MessageEvent::remove(message.to_id())),
                Some((id, text)) if text != message.text() => {
                    events.push(MessageEvent::replace(message.to_id(), pinned(id, text)));
                }
                Some(_) => {}
            }
        }
        // The results of the step before.
        let newest = ctx.conversation().iter().rev().take_while(|message| message.role() != Role::Assistant);
        let results = newest.filter(|message| message.role() == Role::Tool);
        let shorter = results.filter_map(|message| Some((message.to_id(), self.shorten(message)?)));
        events.extend(shorter.map(|(id, message)| MessageEvent::replace(id, message)));
        events.extend(self.messages.into_iter().map(|(id, text)| MessageEvent::append(pinned(id, text))));
        events.into_iter().for_each(|event| ctx.emit(event));
    }

    /// Returns the message of a tool without the instructions of open skills: they are in a message of their own, and
    /// the model reads them once.
    fn shorten(&self, message: MessageRef<'_>) -> Option<Message> {
        let mut parts = message.content().into_owned().into_parts();
        let mut is_shorter = false;
        for part in &mut parts {
            if let Part::ToolResult(result) = part
                && result.tool_name == OPEN
                && let ToolOutput::Json(output) = &mut result.output
                && self.open.iter().any(|name| output["name"] == **name)
                && let Some(content) = output.get_mut("content")
            {
                *content = "It is in the message that says that the skill is open.".into();
                is_shorter = true;
            }
        }
        is_shorter.then(|| message.to_message().with_content(parts))
    }
}

fn pinned(id: String, text: String) -> Message {
    Message::system(text).with_id(id).with_metadata("pinned", true)
}
