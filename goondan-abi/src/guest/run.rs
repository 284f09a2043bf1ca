//! One run of a middleware: the fields of its context, which are read from the host on demand and written back when
//! they were changed.

use std::cell::Cell;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use goondan_core::host::{
    AnswerHost, Apply, CallHost, ConversationHost, Directive, MessageHost, ReplySize, Reviewer, RunHost, Transformer,
};
use goondan_core::linkage::depth::Unchecked;
use goondan_core::linkage::{WireField, WireScope, WireToolItem};
use goondan_core::{
    AgentsHost, Decision, Error, ExtensionName, LayerInfo, MessageEvent, Question, Result, Shown, ToolItem, TurnInfo,
};
use serde_json::de::StrRead;
use serde_json::{Map, Value};

use super::call::CallRef;
use super::conversation::CallConversation;
use super::fields::{Cached, KindFields, read_with};
use super::object::object;
use super::review::GuestReviewer;
use super::transform::export_transformer;
use super::{host_1_3, too_old};
use crate::bytes::ask;
use crate::future::{Imported, NoScope};
use crate::json_map;

/// The host behind the context of a middleware.
pub(super) struct MiddlewareRun {
    pub(super) call: CallRef,
    /// The rest of the chain, while it runs.
    pub(super) next: Option<Imported<NoScope>>,
    conversation: CallConversation,
    /// The first error of something that the layer brought; it fails `next`, or the layer.
    fault: Option<Error>,
    metadata: Cached<Box<Metadata>>,
    /// Created by the first read, because many layers read no field, or only the metadata.
    fields: OnceLock<Box<Fields>>,
}

/// The fields that were read since the start of the run or the last call of `next`.
#[derive(Default)]
struct Fields {
    /// Boxed, because it is large and rarely read.
    scope: OnceLock<Box<TurnInfo>>,
    /// Boxed, because few layers read it.
    tool: OnceLock<Option<Box<ToolItem>>>,
    workdir: OnceLock<PathBuf>,
    of_kind: KindFields,
}

/// Metadata of a run.
#[derive(Default)]
pub(super) struct Metadata {
    entries: Unchecked,
    /// The JSON that was written last: in [`METADATA`], the JSON of the entries.
    json: Vec<u8>,
}

thread_local! {
    /// The metadata that a layer of this library wrote last on this thread. If the next layer reads the same JSON,
    /// nothing is parsed; if most entries are the same, their allocations are reused.
    static METADATA: Cell<Option<Box<Metadata>>> = const { Cell::new(None) };
}

/// A map with more bytes of JSON is not kept in [`METADATA`].
const MAX_KEPT: usize = 1024;

fn read_metadata(call: CallRef) -> Box<Metadata> {
    // A thread that is ending has no thread-locals any more.
    let mut metadata = METADATA.try_with(Cell::take).ok().flatten().unwrap_or_default();
    read_with(call, "metadata", |json| {
        if json.bytes() == metadata.json {
            return Ok(());
        }
        // SAFETY: The contract makes JSON of the host UTF-8.
        json_map::overwrite(&mut metadata.entries, StrRead::new(unsafe { json.str_unchecked() }))
    });
    metadata
}

fn write_metadata(call: CallRef, mut metadata: Box<Metadata>) -> Result<()> {
    metadata.entries.check("a value in the metadata")?;
    metadata.json.clear();
    serde_json::to_writer(&mut metadata.json, &*metadata.entries)?;
    call.write("metadata", &metadata.json)?;
    if metadata.json.len() <= MAX_KEPT {
        _ = METADATA.try_with(|kept| kept.set(Some(metadata)));
    }
    Ok(())
}

impl MiddlewareRun {
    pub(super) fn new(call: CallRef) -> Self {
        Self {
            call,
            next: None,
            conversation: CallConversation::new(call),
            fault: None,
            metadata: Cached::default(),
            fields: OnceLock::new(),
        }
    }

    /// Writes the changed fields to the host and drops all copies, which `next` may make outdated.
    ///
    /// # Errors
    /// Also when a message event was refused.
    pub(super) fn write_back(&mut self) -> Result<()> {
        self.flush()?;
        self.fault.take().map_or(Ok(()), Err)
    }

    #[inline]
    fn flush(&mut self) -> Result<()> {
        self.conversation.forget();
        // Many layers touch neither.
        if self.metadata.is_empty() && self.fields.get().is_none() { Ok(()) } else { self.flush_fields() }
    }

    #[inline(never)]
    fn flush_fields(&mut self) -> Result<()> {
        let (metadata, fields) = (take(&mut self.metadata), self.fields.take());
        let fields = fields.map_or(Ok(()), |fields| fields.of_kind.flush(self.call));
        let metadata = metadata.into_changed().map_or(Ok(()), |metadata| write_metadata(self.call, metadata));
        fields.and(metadata)
    }

    pub(super) fn of_kind(&self) -> &KindFields {
        &self.fields().of_kind
    }

    pub(super) fn of_kind_mut(&mut self) -> &mut KindFields {
        &mut self.fields_mut().of_kind
    }

    fn fields(&self) -> &Fields {
        self.fields.get_or_init(Box::default)
    }

    #[expect(clippy::expect_used, reason = "`fields` has just stored the value")]
    fn fields_mut(&mut self) -> &mut Fields {
        self.fields();
        self.fields.get_mut().expect("it is there")
    }
}

impl Drop for MiddlewareRun {
    /// Writes changes back when the run ends or is cancelled, so that they are kept in both cases.
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            tracing::error!("what a middleware changed was lost: {error}");
        }
    }
}

impl RunHost for MiddlewareRun {
    fn scope(&self) -> &TurnInfo {
        self.fields()
            .scope
            .get_or_init(|| Box::new(read_with(self.call, "scope", |json| json.parse::<WireScope<'_>>()).into()))
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata.get(|| read_metadata(self.call)).entries
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.metadata.get_mut(|| read_metadata(self.call)).entries
    }

    fn refuse(&mut self, error: Error) {
        self.fault.get_or_insert(error);
    }
}

impl MessageHost for MiddlewareRun {
    fn conversation(&self) -> &dyn ConversationHost {
        &self.conversation
    }

    fn is_repeated(&self) -> bool {
        read_with(self.call, "isRepeated", |json| json.parse())
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.call
    }

    fn emit(&mut self, event: MessageEvent, _: Option<&ExtensionName>) {
        self.conversation.forget();
        if let Err(error) = self.call.emit(&event) {
            self.refuse(error);
        }
    }
}

impl AnswerHost for MiddlewareRun {
    fn review(&mut self, reviewer: Reviewer, layer: &LayerInfo) {
        let Some(host) = host_1_3() else { return self.refuse(too_old("reviewers of answers")) };
        let after_streaming = reviewer.after_streaming.into();
        let object = object(&layer.extension, GuestReviewer(reviewer));
        let call = self.call.raw();
        // SAFETY: By the contract of `CallRef::new`, the call is valid, and the object is borrowed for this function,
        // and passed on to the host by it.
        let set = ask(|error| unsafe { (host.run_review)(call, &raw const object, after_streaming, error) });
        if let Err(error) = set {
            self.refuse(error);
        }
    }

    fn transform(&mut self, transformer: Transformer, layer: &LayerInfo) {
        let Some(host) = host_1_3() else { return self.refuse(too_old("transformers of answers")) };
        let (transformer, call) = (export_transformer(&layer.extension, transformer), self.call.raw());
        // SAFETY: As for `review`.
        let set = ask(|error| unsafe { (host.run_transform)(call, &raw const transformer, error) });
        if let Err(error) = set {
            self.refuse(error);
        }
    }
}

impl CallHost for MiddlewareRun {
    fn tool(&self) -> Option<&ToolItem> {
        let read = || read_with(self.call, "tool", |json| json.parse::<Option<WireToolItem<'_>>>());
        self.fields().tool.get_or_init(|| read().map(|tool| Box::new(tool.into()))).as_deref()
    }

    fn workdir(&self) -> Result<&Path> {
        match self.fields().workdir.get() {
            Some(workdir) => Ok(workdir),
            None => {
                let workdir = self.call.read("workdir")?.parse()?;
                Ok(self.fields().workdir.get_or_init(|| workdir))
            }
        }
    }

    fn max_output(&self) -> u64 {
        // An older host has no setting.
        self.call.read("maxOutput").and_then(|json| json.parse()).unwrap_or(ReplySize::DEFAULT_OUTPUT)
    }

    fn ask(&mut self, question: Question, _: Option<&LayerInfo>) {
        // An older host does not know it, and then the call does not run.
        let written = serde_json::to_vec(&question).map_err(Error::from);
        if let Err(error) = written.and_then(|json| self.call.write("ask", &json)) {
            self.refuse(error);
        }
    }

    fn decisions(&self, _: Option<&LayerInfo>) -> Result<Vec<Decision>> {
        self.call.read("decision")?.parse()
    }

    fn is_asked(&self) -> bool {
        // An older host has no questions.
        self.call.read("asked").and_then(|json| json.parse()).unwrap_or_default()
    }

    fn show(&mut self, shown: Shown) {
        if !self.is_asked() {
            return;
        }
        let written = serde_json::to_vec(&shown).map_err(Error::from);
        if let Err(error) = written.and_then(|json| self.call.write("show", &json)) {
            self.refuse(error);
        }
    }
}

impl<D: Directive<Payload: WireField>> Apply<D> for MiddlewareRun {
    /// Writes the directive as a field that cannot be read. A host that refuses it, or does not know it, fails the step
    /// or the call before the core runs.
    fn apply(&mut self, directive: D, _: &ExtensionName) {
        if let Some(fields) = self.fields.get_mut() {
            // The directive may change the request to the model.
            fields.of_kind.step.token_estimate = Cached::default();
        }
        let written = directive.into_payload().into_json().and_then(|json| self.call.write(D::NAME, &json));
        if let Err(error) = written {
            self.refuse(error);
        }
    }
}
