//! Live questions: those that a tool waits for the answers to, while a turn runs or in the background.
// ASK-04

use std::future::pending;

use goondan::agent::{LiveQuestion, LiveUpdate};
use goondan::decision::Decision;
use goondan::host::HostQuestions;
use goondan::{Map, Value};

use super::typed_line::{LineKind, TypedLine};
use crate::commands::run::principal;
use crate::commands::typed_answer::{Choices, Field, Typed, fields};
use crate::output::waits::{self, Extent};
use crate::output::{Styled, first_line};

/// The live questions that are open. The first one is asked.
#[derive(Default)]
pub(crate) struct Live {
    /// `None` where nothing can be typed during a turn.
    questions: Option<HostQuestions>,
    open: Vec<LiveQuestion>,
    /// The form that is being filled in.
    form: Option<Form>,
}

/// A form that is filled in one field after the other, the last one first in `fields`.
struct Form {
    fields: Vec<Field>,
    values: Map<String, Value>,
}

/// The effect of a line that was typed at a question.
pub(crate) enum Answered {
    /// This is printed, and the same is asked.
    Again(String),
    /// It is answered, or something else of it is asked now.
    Next,
    /// The whole call is shown.
    Details,
    /// It is a command of the conversation.
    Command,
}

impl Live {
    pub(crate) fn new(questions: HostQuestions) -> Self {
        Self { questions: Some(questions), ..Self::default() }
    }

    /// Waits for the next change, and takes it in.
    pub(crate) async fn next(&mut self) -> LiveUpdate {
        loop {
            let update = match &mut self.questions {
                Some(questions) => questions.next().await,
                None => pending().await,
            };
            match &update {
                LiveUpdate::Asked(question) => self.open.push(question.clone()),
                LiveUpdate::Gone(question) if self.open.iter().any(|open| open.id() == question.id()) => {
                    self.remove(question);
                }
                // It was answered here, or its turn has ended.
                _ => continue,
            }
            return update;
        }
    }

    /// Takes in that a turn has ended, and its questions with it.
    pub(crate) fn turn_has_ended(&mut self) {
        self.form = None;
        self.open.retain(LiveQuestion::is_open);
    }

    fn remove(&mut self, question: &LiveQuestion) {
        if self.open.first().is_some_and(|first| first.id() == question.id()) {
            self.form = None;
        }
        self.open.retain(|open| open.id() != question.id());
    }

    /// Returns the question that is asked, if there is one.
    pub(crate) fn first(&self) -> Option<&LiveQuestion> {
        self.open.first()
    }

    /// Returns the page of the question that is asked, or of the field of its form.
    pub(crate) fn page(&self, page: Styled) -> Styled {
        match (&self.form, self.first()) {
            (Some(form), _) => form.fields.last().map_or(page.clone(), |field| page.text(&field.page())),
            (None, Some(first)) => waits::live(page, first.told(), Extent::Short),
            (None, None) => page,
        }
    }

    /// Returns the page of the whole call that is asked about.
    pub(crate) fn details(&self, page: Styled) -> Styled {
        self.first().map_or(page.clone(), |first| waits::live(page, first.told(), Extent::Whole))
    }

    /// Returns the possible input.
    pub(crate) fn hint(&self) -> String {
        match (&self.form, self.choices()) {
            (None, Some(choices)) => choices.line().trim().to_owned(),
            _ => "Enter answers".to_owned(),
        }
    }

    /// Returns the line for the answer.
    pub(crate) fn line(&self) -> TypedLine {
        if let Some(field) = self.form.as_ref().and_then(|form| form.fields.last()) {
            let kind = if field.is_secret() { LineKind::Secret } else { LineKind::Answer(field.titles()) };
            return TypedLine::of_kind(field.default_text(), kind);
        }
        let choices = self.choices();
        let is_secret = choices.as_ref().is_some_and(Choices::are_secret) || self.is_secret_json();
        let titles = choices.map(|choices| choices.titles()).unwrap_or_default();
        TypedLine::of_kind(String::new(), if is_secret { LineKind::Secret } else { LineKind::Answer(titles) })
    }

    fn choices(&self) -> Option<Choices> {
        let wait = self.first()?.wait();
        Some(Choices::of_live(wait.questions.first()?, waits::is_cut(wait)))
    }

    /// Returns true if the answer is JSON with a secret, which is typed as a whole.
    fn is_secret_json(&self) -> bool {
        let asked = self.first().and_then(|first| first.wait().questions.first());
        asked.is_some_and(|asked| {
            asked.question.is_secret() && asked.question.schema.as_ref().and_then(fields).is_none()
        })
    }

    /// Takes the typed line.
    pub(crate) fn answer(&mut self, typed: &str) -> Answered {
        if let Some(form) = &mut self.form {
            let Some(field) = form.fields.last() else { return Answered::Next };
            match field.parse(typed) {
                Ok(value) => {
                    form.values.extend(value.map(|value| (field.name.clone(), value)));
                    form.fields.pop();
                }
                Err(problem) => return Answered::Again(problem),
            }
            if !form.fields.is_empty() {
                return Answered::Next;
            }
            let values = std::mem::take(&mut form.values);
            self.form = None;
            return self.decide(|call| Decision::new(call, Value::Object(values)));
        }
        let Some((choices, first)) = self.choices().zip(self.first()) else { return Answered::Next };
        let schema = first.wait().questions.first().and_then(|asked| asked.question.schema.clone());
        // The JSON of a form that has no lines.
        if choices.is_form()
            && schema.as_ref().and_then(fields).is_none()
            && let Ok(value) = serde_json::from_str::<Value>(typed)
        {
            return self.decide(|call| Decision::new(call, value));
        }
        match choices.parse(typed) {
            Typed::Yes(value) => self.decide(|call| Decision::new(call, value)),
            Typed::No(reason) => self.decide(|call| Decision::reject(call, reason)),
            Typed::Value => match schema.as_ref().and_then(fields) {
                Some(mut fields) => {
                    fields.reverse();
                    self.form = Some(Form { fields, values: Map::new() });
                    Answered::Next
                }
                None => {
                    let schema = schema.map(|schema| schema.to_string()).unwrap_or_default();
                    Answered::Again(format!("JSON that fits {}", first_line(&schema, 400)))
                }
            },
            Typed::Details => Answered::Details,
            Typed::Command => Answered::Command,
            Typed::Unfit(problem) => Answered::Again(problem),
            Typed::Edit | Typed::Nothing => Answered::Again(self.hint()),
        }
    }

    fn decide(&mut self, decision: impl FnOnce(goondan::name::ToolCallId) -> Decision) -> Answered {
        let Some(first) = self.first() else { return Answered::Next };
        match first.decide(decision(first.wait().call.clone()).by(principal())) {
            Ok(()) => {
                let first = first.clone();
                self.remove(&first);
                Answered::Next
            }
            Err(error) => Answered::Again(error.message().into_owned()),
        }
    }
}
