//! The beginning that each request has in common with the one before: the part that the cache of a provider can keep,
//! and who changed the rest.
//!
//! The messages of the last request to each model are kept as references. As long as messages are only appended, the
//! next request adds references to the new ones, and if the oldest were removed, those are dropped. Otherwise both are
//! compared message by message: by address, and by content only where a message was made anew.
// CACHE-01

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, Weak};

use goondan_core::host::{ConversationExt, Projection, ToolCatalogExt};
use goondan_core::{
    Conversation, ExtensionName, KeptPrefix, Message, MessageData, MessageEvent, MessageId, ModelName, Part,
    PrefixBreak, PrefixChange, RequestPart, ToolCallId, ToolCatalog, ToolItem, ToolOutput, ToolSource,
};
use serde::Serialize;

use crate::ports::model::Model;
use crate::spec::AgentSpec;

/// The number of models whose last requests are kept.
const MOST_MODELS: usize = 4;

/// The number of changes after which a request is forgotten: its model is not used any more.
const MOST_CHANGES: usize = 10_000;

/// The last requests of a conversation, and the changes since.
#[derive(Default)]
pub(crate) struct Prefixes {
    /// One for each model.
    last: Vec<LastRequest>,
    /// The changes of the tools in the running step: each layer that changed them, and the tools before.
    tools_before: Vec<(ExtensionName, ToolCatalog)>,
    /// The beginning that the request of the running step has kept.
    pub(super) kept: Option<KeptPrefix>,
}

/// The parts of a request.
pub(super) struct Asked<'a> {
    pub(super) spec: &'a Arc<AgentSpec>,
    pub(super) name: Option<&'a ModelName>,
    pub(super) model: &'a dyn Model,
    pub(super) tools: &'a ToolCatalog,
    pub(super) projection: Option<&'a Projection>,
}

/// The last request to a model.
struct LastRequest {
    name: Option<ModelName>,
    /// The provider and its name of the model.
    model: (String, String),
    spec: Weak<AgentSpec>,
    system: Measured,
    tools: ToolCatalog,
    /// The characters of each tool, once they were counted.
    tool_sizes: Vec<u64>,
    /// The changes of the tools: see [`Prefixes`].
    tools_before: Vec<(ExtensionName, ToolCatalog)>,
    messages: VecDeque<Sent>,
    /// Empty; it keeps its memory for the messages that are moved.
    moved: Vec<Sent>,
    /// The number of messages that were measured, and their characters.
    measured: (usize, u64),
    /// Whether the messages are those of the conversation, without edits.
    is_plain: bool,
    /// The calls and results of the conversation that were not sent.
    orphans: Vec<ToolCallId>,
    /// The number of messages of the conversation that were not sent, because they have nothing else.
    hidden: usize,
    /// The messages that edits have added or replaced, and the extensions that made the edits.
    edited: Vec<Change>,
    /// The changes of messages since the request.
    changes: Vec<Change>,
}

/// A change of a message, or of all of them.
struct Change {
    target: Option<MessageId>,
    by: Option<ExtensionName>,
    is_removal: bool,
}

/// A message of a request.
struct Sent {
    message: Arc<Message>,
    /// The part of it that was sent, if not all.
    visible: Option<Box<MessageData>>,
    chars: u64,
}

impl Sent {
    fn data(&self) -> &MessageData {
        self.visible.as_deref().unwrap_or(self.message.data())
    }

    fn is(&self, message: &Arc<Message>, visible: Option<&MessageData>) -> bool {
        let is_same = Arc::ptr_eq(&self.message, message) && self.visible.is_none() && visible.is_none();
        is_same || self.data() == visible.unwrap_or(message.data())
    }
}

/// A text that is not kept.
#[derive(Default, PartialEq)]
struct Measured {
    digest: u64,
    chars: u64,
}

impl Measured {
    fn of(text: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self { digest: hasher.finish(), chars: text.map_or(0, count) }
    }
}

/// The first difference of two lists.
struct Difference {
    index: usize,
    change: PrefixChange,
    by: Option<ExtensionName>,
    tool: Option<String>,
}

impl Prefixes {
    /// Notes that a step starts.
    pub(super) fn step_started(&mut self) {
        self.tools_before.clear();
        self.kept = None;
    }

    /// Notes that a layer of an extension is about to change the tools.
    pub(super) fn changing_tools(&mut self, by: &ExtensionName, tools: &ToolCatalog) {
        self.tools_before.push((by.clone(), tools.clone()));
    }

    /// Notes an event that is no append.
    pub(super) fn changed(&mut self, event: &MessageEvent, by: Option<&ExtensionName>) {
        let target = match event {
            MessageEvent::Replace { target_id, .. } | MessageEvent::Remove { target_id } => Some(target_id),
            _ => None,
        };
        let is_removal = matches!(event, MessageEvent::Remove { .. });
        self.last.retain_mut(|last| {
            last.changes.push(Change { target: target.cloned(), by: by.cloned(), is_removal });
            last.changes.len() <= MOST_CHANGES
        });
    }

    /// Forgets the requests, because the turn has no receiver for the comparison.
    #[inline]
    pub(super) fn forget(&mut self) {
        if !self.last.is_empty() {
            self.last.clear();
        }
    }

    /// Takes in a request, and computes its common beginning with the one before. The conversation comes with the
    /// calls and results that are not sent; `edits` are those of the projection.
    // A function of its own, which `benches/count.sh` counts.
    #[inline(never)]
    pub(super) fn sent<'e>(
        &mut self,
        asked: &Asked<'_>,
        conversation: (&Conversation, &[ToolCallId]),
        edits: impl Iterator<Item = (&'e MessageEvent, &'e ExtensionName)>,
    ) {
        let Some(place) = self.last.iter().position(|last| last.name.as_ref() == asked.name) else {
            if self.last.len() == MOST_MODELS {
                self.last.remove(0);
            }
            let mut first = LastRequest::new(asked);
            first.take_tools(asked, &mut self.tools_before);
            first.take_messages(asked, conversation, edits);
            self.last.push(first);
            return;
        };
        let last = &mut self.last[place];
        let has_reloaded = !std::ptr::eq(last.spec.as_ptr(), Arc::as_ptr(asked.spec));
        if has_reloaded && last.model != model_of(asked) {
            *last = LastRequest::new(asked);
            last.take_tools(asked, &mut self.tools_before);
            last.take_messages(asked, conversation, edits);
            return;
        }
        let before = last.measure();
        let mut system_differs = false;
        if has_reloaded {
            let system = Measured::of(asked.spec.system.as_deref());
            system_differs = system != last.system;
            (last.system, last.spec) = (system, Arc::downgrade(asked.spec));
        }
        let tools = last.take_tools(asked, &mut self.tools_before);
        let messages = last.take_messages(asked, conversation, edits);
        self.kept = Some(before.kept(asked.model.reads_tools_first(), system_differs, tools, messages));
    }
}

/// The characters of a request before the next one replaced it.
struct Before {
    system: u64,
    tools: u64,
    messages: u64,
}

impl Before {
    /// Returns how much of the request the next one keeps, which has these differences.
    fn kept(
        &self,
        tools_first: bool,
        system_differs: bool,
        tools: Option<(Difference, u64)>,
        messages: Option<(Difference, u64)>,
    ) -> KeptPrefix {
        let Self { system, tools: all_tools, messages: all_messages } = *self;
        let of = system + all_tools + all_messages;
        let in_system = system_differs.then(|| {
            let before = if tools_first { all_tools } else { 0 };
            (before, PrefixBreak::new(RequestPart::System, 0, PrefixChange::Replaced))
        });
        let in_tools = tools.map(|(difference, kept)| {
            let before = if tools_first { 0 } else { system };
            (before + kept, difference.into_break(RequestPart::Tools))
        });
        let in_messages = messages
            .map(|(difference, kept)| (system + all_tools + kept, difference.into_break(RequestPart::Messages)));
        let in_front = if tools_first { in_tools.or(in_system) } else { in_system.or(in_tools) };
        match in_front.or(in_messages) {
            None => KeptPrefix::new(of, of),
            Some((kept, broken)) => {
                let mut prefix = KeptPrefix::new(kept, of);
                prefix.broken = Some(broken);
                prefix
            }
        }
    }
}

impl Difference {
    fn into_break(self, part: RequestPart) -> PrefixBreak {
        let Self { index, change, by, tool } = self;
        let mut broken = PrefixBreak::new(part, index, change);
        (broken.extension_name, broken.tool_name) = (by, tool);
        broken
    }
}

impl LastRequest {
    /// A request without tools and messages.
    fn new(asked: &Asked<'_>) -> Self {
        Self {
            name: asked.name.cloned(),
            model: model_of(asked),
            spec: Arc::downgrade(asked.spec),
            system: Measured::of(asked.spec.system.as_deref()),
            tools: ToolCatalog::default(),
            tool_sizes: Vec::new(),
            tools_before: Vec::new(),
            messages: VecDeque::new(),
            moved: Vec::new(),
            measured: (0, 0),
            is_plain: false,
            orphans: Vec::new(),
            hidden: 0,
            edited: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Counts the characters that were not counted yet.
    fn measure(&mut self) -> Before {
        if self.tool_sizes.len() != self.tools.len() {
            self.tool_sizes.clear();
            self.tool_sizes.extend(self.tools.iter().map(tool_chars));
        }
        let (from, mut chars) = self.measured;
        for sent in self.messages.range_mut(from..) {
            sent.chars = message_chars(sent.visible.as_deref().unwrap_or(sent.message.data()));
            chars += sent.chars;
        }
        self.measured = (self.messages.len(), chars);
        Before { system: self.system.chars, tools: self.tool_sizes.iter().sum(), messages: chars }
    }

    /// Replaces the tools by those of the next request. Returns the first difference, and the characters before it, as
    /// far as they were counted.
    fn take_tools(
        &mut self,
        asked: &Asked<'_>,
        before: &mut Vec<(ExtensionName, ToolCatalog)>,
    ) -> Option<(Difference, u64)> {
        let difference =
            if self.tools.is_shared_with(asked.tools) { None } else { self.new_tools(asked.tools, before) };
        std::mem::swap(&mut self.tools_before, before);
        before.clear();
        difference
    }

    #[cold]
    fn new_tools(&mut self, new: &ToolCatalog, before: &[(ExtensionName, ToolCatalog)]) -> Option<(Difference, u64)> {
        let old = std::mem::replace(&mut self.tools, new.clone());
        let index = old.iter().zip(new.iter()).take_while(|(old, new)| is_same_tool(old, new)).count();
        if index == old.len() && index == new.len() {
            return None;
        }
        let kept = self.tool_sizes.iter().take(index).sum();
        self.tool_sizes.clear();
        let (was, is) = (old.iter().nth(index), new.iter().nth(index));
        let (tool, change) = match (was, is) {
            (Some(was), Some(is)) if was.name == is.name => (was, PrefixChange::Replaced),
            (Some(was), _) if new.get(was.name.as_str()).is_none() => (was, PrefixChange::Removed),
            (_, Some(is)) if old.get(is.name.as_str()).is_none() => (is, PrefixChange::Added),
            (Some(tool), _) | (None, Some(tool)) => (tool, PrefixChange::Moved),
            (None, None) => return None,
        };
        let name = tool.name.as_str();
        let by = changer(name, before, new).or_else(|| changer(name, &self.tools_before, &old));
        let by = by.cloned().or_else(|| owner(tool));
        Some((Difference { index, change, by, tool: Some(name.to_owned()) }, kept))
    }

    /// Replaces the messages by those of the next request. Returns the first difference, and the characters before it,
    /// as far as they were counted.
    fn take_messages<'e>(
        &mut self,
        asked: &Asked<'_>,
        conversation: (&Conversation, &[ToolCallId]),
        edits: impl Iterator<Item = (&'e MessageEvent, &'e ExtensionName)>,
    ) -> Option<(Difference, u64)> {
        let (conversation, orphans) = conversation;
        let is_plain = asked.projection.is_none();
        let goes_on = self.changes.is_empty() || self.orphans.is_empty() && self.removed_the_oldest();
        if is_plain && self.is_plain && goes_on && *orphans == *self.orphans {
            let difference = self.drop_the_oldest();
            let known = self.messages.len() + self.hidden;
            let new = conversation.newest_first().take(conversation.len().saturating_sub(known));
            self.moved.extend(new.map(|message| Sent { message: Arc::clone(message), visible: None, chars: 0 }));
            self.messages.extend(self.moved.drain(..).rev());
            return difference;
        }
        self.is_plain = is_plain;
        orphans.clone_into(&mut self.orphans);
        let difference = self.new_messages(asked.projection, conversation, edits);
        self.hidden = conversation.len().saturating_sub(self.messages.len());
        difference
    }

    /// Whether nothing was changed but that the oldest messages were removed, one after another.
    fn removed_the_oldest(&self) -> bool {
        let mut oldest = self.messages.iter().map(|sent| sent.message.id());
        self.changes.iter().all(|change| change.is_removal && change.target.as_ref() == oldest.next())
    }

    /// Drops the messages that were removed. Returns the first difference, if there are some.
    fn drop_the_oldest(&mut self) -> Option<(Difference, u64)> {
        let by = self.changes.first()?.by.clone();
        for sent in self.messages.drain(..self.changes.len()) {
            let (measured, chars) = &mut self.measured;
            (*measured, *chars) = (measured.saturating_sub(1), *chars - sent.chars);
        }
        self.changes.clear();
        Some((Difference { index: 0, change: PrefixChange::Removed, by, tool: None }, 0))
    }

    fn new_messages<'e>(
        &mut self,
        projection: Option<&Projection>,
        conversation: &Conversation,
        edits: impl Iterator<Item = (&'e MessageEvent, &'e ExtensionName)>,
    ) -> Option<(Difference, u64)> {
        let mut new = conversation.projected_visible(projection);
        let (mut index, mut next) = (0, new.next());
        while let (Some((message, visible)), Some(old)) = (&next, self.messages.get_mut(index)) {
            if !old.is(message, visible.as_ref()) {
                break;
            }
            if !Arc::ptr_eq(&old.message, message) {
                old.message = Arc::clone(message);
            }
            old.visible = next.take().and_then(|(_, visible)| visible).map(Box::new);
            (index, next) = (index + 1, new.next());
        }
        let mut old = std::mem::take(&mut self.moved);
        old.extend(self.messages.drain(index..));
        let rest = next.into_iter().chain(new);
        let rest = rest.map(|(message, visible)| Sent {
            message: Arc::clone(message),
            visible: visible.map(Box::new),
            chars: 0,
        });
        self.messages.extend(rest);
        let mut edited: Vec<_> = edits.map(|(event, by)| Change::of_edit(event, by)).collect();
        let difference = (!old.is_empty()).then(|| {
            let lost: u64 = old.iter().map(|sent| sent.chars).sum();
            // Of these, only measured ones have characters.
            let (measured, chars) = self.measured;
            self.measured = (measured.min(index), chars - lost);
            let change = message_change(&old, || self.messages.range(index..));
            let ids = [old.first(), self.messages.get(index)].into_iter().flatten().map(|sent| sent.message.id());
            let sources = [&self.changes, &edited, &self.edited];
            let mut by = ids.flat_map(|id| sources.iter().filter_map(move |changes| changer_of(id, changes)));
            (Difference { index, change, by: by.next().cloned(), tool: None }, self.measured.1)
        });
        std::mem::swap(&mut self.edited, &mut edited);
        self.changes.clear();
        old.clear();
        self.moved = old;
        difference
    }
}

impl Change {
    /// The change that an edit of the messages of one request makes.
    fn of_edit(event: &MessageEvent, by: &ExtensionName) -> Self {
        let target = match event {
            MessageEvent::Append { message } => Some(message.id()),
            MessageEvent::Replace { target_id, .. } | MessageEvent::Remove { target_id } => Some(target_id),
            _ => None,
        };
        Self { target: target.cloned(), by: Some(by.clone()), is_removal: matches!(event, MessageEvent::Remove { .. }) }
    }
}

/// Returns the extension that has changed the message `id`, or all of them.
fn changer_of<'c>(id: &MessageId, changes: &'c [Change]) -> Option<&'c ExtensionName> {
    let mut changes = changes.iter().rev();
    changes.find(|change| change.target.as_ref().is_none_or(|target| target == id))?.by.as_ref()
}

/// Returns the change of the first of the `old` messages, in whose place the `new` ones are.
fn message_change<'s, N: Iterator<Item = &'s Sent>>(old: &[Sent], new: impl Fn() -> N) -> PrefixChange {
    let id = |sent: &'s Sent| sent.message.id();
    match (old.first().map(|sent| sent.message.id()), new().next().map(id)) {
        (Some(was), Some(is)) if was == is => PrefixChange::Replaced,
        (Some(was), Some(is)) if new().any(|sent| id(sent) == was) => {
            let was_there = old.iter().any(|sent| sent.message.id() == is);
            if was_there { PrefixChange::Moved } else { PrefixChange::Added }
        }
        _ => PrefixChange::Removed,
    }
}

/// Returns the layer that has added, removed or replaced the tool `name`. Each of the `changes` has the tools before
/// it; `after` are those after the last one.
fn changer<'c>(
    name: &str,
    changes: &'c [(ExtensionName, ToolCatalog)],
    after: &ToolCatalog,
) -> Option<&'c ExtensionName> {
    changes.iter().enumerate().find_map(|(index, (by, before))| {
        let after = changes.get(index + 1).map_or(after, |(_, next)| next);
        let is_same = match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) => is_same_tool(before, after),
            (before, after) => before.is_none() && after.is_none(),
        };
        (!is_same).then_some(by)
    })
}

/// Returns the extension that offers a tool.
fn owner(tool: &ToolItem) -> Option<ExtensionName> {
    match tool.source.as_ref()? {
        ToolSource::Extension { name } => ExtensionName::new(name).ok(),
        ToolSource::Mcp { extension_name, .. } => ExtensionName::new(extension_name).ok(),
        _ => None,
    }
}

/// Whether two tools are the same for a model.
fn is_same_tool(a: &ToolItem, b: &ToolItem) -> bool {
    std::ptr::eq(a, b)
        || a.name == b.name
            && a.description == b.description
            && a.parameters == b.parameters
            && a.provider_tools == b.provider_tools
}

fn model_of(asked: &Asked<'_>) -> (String, String) {
    let info = asked.model.info();
    (info.provider, info.model)
}

fn tool_chars(tool: &ToolItem) -> u64 {
    let text = count(tool.name.as_str()) + tool.description.as_deref().map_or(0, count);
    text + tool.parameters.as_ref().map_or(0, json_chars)
}

fn message_chars(message: &MessageData) -> u64 {
    message.content.parts().iter().map(part_chars).sum()
}

fn part_chars(part: &Part) -> u64 {
    match part {
        Part::Text(text) => count(&text.text),
        Part::Reasoning(reasoning) => count(reasoning.text()),
        Part::ToolCall(call) => count(&call.tool_name) + json_chars(&call.input),
        Part::ToolResult(result) => match &result.output {
            ToolOutput::Content(parts) => parts.iter().map(part_chars).sum(),
            output => count(&output.to_text()),
        },
        Part::File(file) => count(&file.url),
        other => json_chars(other),
    }
}

fn count(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Counts the characters of a value in JSON, which is not built.
fn json_chars(value: &impl Serialize) -> u64 {
    struct Counted(u64);

    impl io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // All bytes of a character but the first one begin with the bits 10.
            self.0 += bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counted = Counted(0);
    match serde_json::to_writer(&mut counted, value) {
        Ok(()) => counted.0,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use goondan_core::{Role, Source, ToolCallPart};
    use serde_json::{Map, json};

    use super::*;
    use crate::{Policy, ScriptedModel};

    #[test]
    fn a_step_of_a_long_conversation_allocates_nothing_once_there_is_room() {
        let spec = Arc::new(AgentSpec {
            model: Arc::new(ScriptedModel::new([])),
            models: Default::default(),
            system: Some("instructions".to_owned()),
            extensions: Vec::new(),
            policy: Policy::default(),
            answer: None,
            tools: Arc::default(),
            hints: Map::new(),
            router: None,
            opening: Default::default(),
            _secrets: Vec::new(),
        });
        let tools = ToolCatalog::default();
        let asked = Asked { spec: &spec, name: None, model: &*spec.model, tools: &tools, projection: None };
        let said = |index| Arc::new(Message::user(format!("message {index}")));
        let (mut conversation, _) = Conversation::from_base((0..1_000).map(said));
        let mut prefixes = Prefixes::default();
        let mut step = |index| {
            let call =
                ToolCallPart::new(ToolCallId::from(format!("{index}")), "bash__exec", json!({ "command": "ls" }));
            let source = Source::Assistant { step_id: format!("step-{index}") };
            let answer = Message::new(Role::Assistant, vec![Part::ToolCall(Box::new(call))], source);
            for message in [answer, Message::user("more")] {
                conversation.apply(MessageEvent::append(message)).unwrap();
            }
            let allocations = measure(|| {
                prefixes.step_started();
                prefixes.sent(&asked, (&conversation, &[]), std::iter::empty());
            });
            (allocations.count_total, prefixes.kept.take())
        };
        let steps: Vec<_> = (0..100).map(&mut step).collect();
        // The second step makes the room for new messages. The list of all messages doubles its room once.
        let allocating = steps.iter().skip(2).filter(|(allocations, _)| *allocations > 0).count();
        assert!(allocating <= 1, "{steps:?}");
        let kept = steps.iter().filter_map(|(_, kept)| kept.as_ref());
        assert_eq!(kept.filter(|kept| kept.kept == kept.of).count(), steps.len() - 1, "{steps:?}");
    }
}
