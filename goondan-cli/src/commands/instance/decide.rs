//! `goondan instance decide`: decides about a tool call that waits.
// ASK-01, ASK-02

use std::io;

use goondan::decision::{AskedQuestion, Decision, Wait};
use goondan::name::ToolCallId;
use goondan::{Error, ErrorCode, Map, Result, Value, json};

use super::find::find;
use crate::args::InstanceDecideArgs;
use crate::commands::run;
use crate::commands::typed_answer::{Choices, Typed};
use crate::outcome::Outcome;
use crate::output::{self, waits};

pub(crate) fn decide(args: &InstanceDecideArgs) -> Result<Outcome> {
    let (store, id) = find(&args.selector)?;
    let waiting = store.read(&id)?.waits;
    let Some(call) = &args.call else {
        if args.json {
            let masked: Vec<_> = waiting.iter().map(Wait::masked).collect();
            output::print_data(serde_json::to_string(&masked)? + "\n")?;
        } else if waiting.is_empty() {
            output::print("No call waits for a decision.\n")?;
        } else {
            output::print_styled(&waits::page(&waiting))?;
        }
        return Ok(Outcome::Done);
    };
    let Some(wait) = waiting.iter().find(|wait| wait.call.as_str() == call) else {
        let calls: Vec<_> = waiting.iter().map(|wait| wait.call.as_str()).collect();
        let waiting = if calls.is_empty() { "none does".to_owned() } else { format!("{} do", calls.join(", ")) };
        return Err(Error::new(
            ErrorCode::NOT_WAITING,
            format!("the call `{call}` of `{id}` does not wait; {waiting}"),
        )
        .suggest("leave the call out to see which ones wait"));
    };
    let asked = args.question.as_ref().map(|name| asked(wait, name)).transpose()?;
    let decision = decision(args, wait, asked)?.by(run::principal());
    let decision = match asked {
        Some(asked) => decision.of(asked.by.clone()),
        None => decision,
    };
    run::run(&args.run(id.agent.to_string(), id.key.to_string(), vec![decision]))
}

fn decision(args: &InstanceDecideArgs, wait: &Wait, asked: Option<&AskedQuestion>) -> Result<Decision> {
    let call = wait.call.clone();
    if let Some(answer) = &args.answer {
        let decision = typed(answer, call, asked.or(wait.questions.first()))?;
        return args.args.iter().try_fold(decision, |decision, new| Ok(decision.with_args(parse("--args", new)?)));
    }
    if let Some(reason) = &args.reject {
        return Ok(Decision::reject(call, reason.as_str()));
    }
    let value = match &args.value {
        Some(value) => parse::<Value>("--value", value)?,
        None if args.always => json!({ "always": true }),
        None => true.into(),
    };
    let decision = Decision::new(call, value);
    Ok(match &args.args {
        Some(new) => decision.with_args(parse::<Map<String, Value>>("--args", new)?),
        None => decision,
    })
}

/// Returns the decision of an answer in words.
// ASK-04
fn typed(answer: &str, call: ToolCallId, asked: Option<&AskedQuestion>) -> Result<Decision> {
    // A call that waits has an open question.
    let Some(asked) = asked else { return Ok(Decision::new(call, answer)) };
    let choices = Choices::of(asked, false);
    if choices.are_secret() && answer != "-" {
        return Err(Error::new(ErrorCode::USAGE, "a secret on the command line can be read by others")
            .suggest("pipe it to the command, with `--answer -`"));
    }
    let line = if answer == "-" { io::read_to_string(io::stdin().lock())? } else { answer.to_owned() };
    match choices.parse(&line) {
        Typed::Yes(value) => Ok(Decision::new(call, value)),
        Typed::No(reason) => Ok(Decision::reject(call, reason)),
        _ => Err(Error::new(ErrorCode::USAGE, "the answer is none that the question takes")
            .suggest(format!("it takes {}", choices.answers()))),
    }
}

fn parse<T: serde::de::DeserializeOwned>(option: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(ErrorCode::USAGE, format!("the JSON of `{option}` cannot be read: {error}"))
            .suggest("in a shell, put single quotes around it, as in '{\"path\": \"a.txt\"}'")
    })
}

fn asked<'w>(wait: &'w Wait, name: &str) -> Result<&'w AskedQuestion> {
    let name_of = |asked: &AskedQuestion| match &asked.by.name {
        Some(name) => format!("{}/{name}", asked.by.extension),
        None => asked.by.extension.to_string(),
    };
    wait.questions.iter().find(|asked| name_of(asked) == name).ok_or_else(|| {
        let names: Vec<_> = wait.questions.iter().map(name_of).collect();
        Error::new(ErrorCode::USAGE, format!("no question `{name}` is open about the call"))
            .suggest(format!("there are: {}", names.join(", ")))
    })
}
