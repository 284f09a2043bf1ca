//! The questions about tool calls that wait, at the prompt.
// ASK-01, ASK-04

use goondan::decision::{Decision, Question, Wait};
use goondan::{Map, Result, Value, json};
use serde::de::DeserializeOwned;

use super::command::{self, Command};
use super::live::Answered;
use super::{Prompted, Repl};
use crate::commands::run::{Work, principal};
use crate::commands::typed_answer::{Choices, Typed, fields};
use crate::outcome::Outcome;
use crate::output::waits::{self, Extent};
use crate::output::{self, first_line};

/// The answer of a person about a call that waits.
enum Decided {
    With(Box<Decision>),
    /// It goes on waiting.
    Later,
    /// The conversation ends.
    Left(Outcome),
}

impl Repl<'_> {
    /// Asks the live questions of turns in the background.
    // ASK-04
    async fn ask_live(&mut self) -> Result<Option<Outcome>> {
        while self.live.first().is_some() {
            let asked = self.live.first().map(|first| first.id().clone());
            output::eprint_styled(&self.live.page(self.terminal.styled()).wrapped(self.terminal.columns()));
            self.print_status(&self.live.hint());
            loop {
                let line = self.live.line();
                let is_secret = line.is_secret();
                let prompted =
                    if is_secret { self.prompt_secret().await? } else { self.prompt(line.into_text()).await? };
                let text = match prompted {
                    Prompted::Text(text) => text,
                    Prompted::Interrupted { .. } => return Ok(None),
                    Prompted::Left(outcome) => return Ok(Some(outcome)),
                };
                if self.live.first().map(|first| first.id()) != asked.as_ref() {
                    break;
                }
                match self.live.answer(&text) {
                    Answered::Next => break,
                    Answered::Again(problem) => self.print_status(&problem),
                    Answered::Details => {
                        let page = self.live.details(self.terminal.styled());
                        output::eprint_styled(&page.wrapped(self.terminal.columns()));
                    }
                    Answered::Command => match command::parse(&text) {
                        Command::Quit => return Ok(Some(Outcome::Done)),
                        command => self.execute(command).await?,
                    },
                }
            }
        }
        Ok(None)
    }

    /// Asks about the first call that waits, if there is one, and goes on with the turn once all are decided. Returns an
    /// outcome if the conversation ends.
    // ASK-01
    pub(super) async fn ask(&mut self) -> Result<Option<Outcome>> {
        if let Some(outcome) = self.ask_live().await? {
            return Ok(Some(outcome));
        }
        let waits = self.conversation.instance.waits().await?;
        self.waits = !waits.is_empty();
        let first = waits.into_iter().find_map(|wait| Some((wait.questions.first()?.clone(), wait)));
        let Some((asked, wait)) = first else { return Ok(None) };
        let choices = Choices::of(&asked, waits::is_cut(&wait));
        let page = waits::call(self.terminal.styled(), &wait, Extent::Short);
        let page = wait.masked().questions.first().into_iter().fold(page, waits::question);
        output::eprint_styled(&page.wrapped(self.terminal.columns()));
        let decision = match self.decide(&wait, &asked.question, &choices).await? {
            Decided::With(decision) => decision.of(asked.by.clone()).by(principal()),
            Decided::Later => return Ok(None),
            Decided::Left(outcome) => return Ok(Some(outcome)),
        };
        // Another one may be open.
        self.asks = true;
        self.turn(Work::Decide(vec![decision])).await
    }

    /// Reads lines until one of them decides the call.
    async fn decide(&mut self, wait: &Wait, question: &Question, choices: &Choices) -> Result<Decided> {
        let mut is_told = false;
        loop {
            if !std::mem::replace(&mut is_told, true) {
                self.print_status(&choices.line());
            }
            let prompted =
                if choices.are_secret() { self.prompt_secret().await? } else { self.prompt(String::new()).await? };
            let text = match prompted {
                Prompted::Text(text) => text,
                Prompted::Interrupted { .. } => {
                    self.print_status("it waits: /decide asks again, and so does the next start");
                    return Ok(Decided::Later);
                }
                Prompted::Left(outcome) => return Ok(Decided::Left(outcome)),
            };
            let yes = |value: Value| Decision::new(wait.call.clone(), value);
            match choices.parse(&text) {
                Typed::Yes(value) => return Ok(Decided::With(yes(value).into())),
                Typed::No(reason) => return Ok(Decided::With(Decision::reject(wait.call.clone(), reason).into())),
                Typed::Edit if wait.masked().args != wait.args => {
                    self.print_status("the arguments have secrets, which cannot be edited here");
                }
                Typed::Edit => {
                    let args = serde_json::to_string(&wait.args)?;
                    if let Some(args) = self.prompt_json(args, false).await? {
                        return Ok(Decided::With(yes(true.into()).with_args(args).into()));
                    }
                    is_told = false;
                }
                Typed::Value => {
                    if let Some(value) = self.prompt_form(question).await? {
                        return Ok(Decided::With(yes(value).into()));
                    }
                    is_told = false;
                }
                Typed::Details => {
                    let page = waits::call(self.terminal.styled(), wait, Extent::Whole);
                    output::eprint_styled(&page.wrapped(self.terminal.columns()));
                    is_told = false;
                }
                Typed::Nothing => is_told = false,
                Typed::Unfit(problem) => self.print_status(&problem),
                Typed::Command => match command::parse(&text) {
                    Command::Quit => return Ok(Decided::Left(Outcome::Done)),
                    command => {
                        self.execute(command).await?;
                        is_told = false;
                    }
                },
            }
        }
    }

    /// Reads a value that fits a schema, of a form one field after the other; `None` if the person gives none.
    // ASK-04
    async fn prompt_form(&mut self, question: &Question) -> Result<Option<Value>> {
        let Some(fields) = question.schema.as_ref().and_then(fields) else {
            let schema = question.schema.as_ref().map(Value::to_string).unwrap_or_default();
            self.print_status(&format!("JSON that fits {}", first_line(&schema, 400)));
            return self.prompt_json(String::new(), question.is_secret()).await;
        };
        let mut form = Map::new();
        for field in fields {
            output::eprint_styled(&self.terminal.styled().text(&field.page()).wrapped(self.terminal.columns()));
            loop {
                let prompted = match field.is_secret() {
                    true => self.prompt_secret().await?,
                    false => self.prompt(field.default_text()).await?,
                };
                let Prompted::Text(typed) = prompted else { return Ok(None) };
                match field.parse(&typed) {
                    Ok(Some(value)) => _ = form.insert(field.name, value),
                    Ok(None) => {}
                    Err(problem) => {
                        self.print_status(&problem);
                        continue;
                    }
                }
                break;
            }
        }
        Ok(Some(form.into()))
    }

    /// Reads JSON, which begins with `text` and is not shown if it has a secret; `None` if the person gives none.
    async fn prompt_json<T: DeserializeOwned>(&mut self, mut text: String, is_secret: bool) -> Result<Option<T>> {
        loop {
            let prompted = if is_secret { self.prompt_secret().await? } else { self.prompt(text).await? };
            let Prompted::Text(typed) = prompted else { return Ok(None) };
            if typed.trim().is_empty() {
                return Ok(None);
            }
            match serde_json::from_str(&typed) {
                Ok(value) => return Ok(Some(value)),
                Err(error) => self.print_status(&format!("this is not the JSON that is expected: {error}")),
            }
            text = typed;
        }
    }

    /// Lets the extensions `approval` show their rules.
    pub(super) async fn rules(&self, forget: Option<usize>) -> Result<()> {
        let instance = &self.conversation.instance;
        if instance.tools().await?.get("approval__rules").is_none() {
            self.print_status("no rules: this agent does not have the extension `approval`");
            return Ok(());
        }
        instance.events().emit("approval.rules", (json!({ "forget": forget }),)).await
    }
}
