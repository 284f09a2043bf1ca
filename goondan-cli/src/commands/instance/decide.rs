//! `goondan instance decide`: decides about a tool call that waits.
// ASK-01, ASK-02

use goondan::decision::{AskedQuestion, Decision, Wait};
use goondan::{Error, ErrorCode, Map, Result, Value, json};

use super::find::find;
use crate::args::InstanceDecideArgs;
use crate::commands::run;
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
    let decision = decision(args, wait)?.by(run::principal());
    let decision = match &args.question {
        Some(name) => decision.of(asked(wait, name)?.by.clone()),
        None => decision,
    };
    run::run(&args.run(id.agent.to_string(), id.key.to_string(), vec![decision]))
}

fn decision(args: &InstanceDecideArgs, wait: &Wait) -> Result<Decision> {
    let call = wait.call.clone();
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
