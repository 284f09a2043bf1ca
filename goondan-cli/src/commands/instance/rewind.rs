//! `goondan instance rewind`: takes a conversation back to an earlier turn.
// BACK-01

use std::sync::Arc;

use goondan::conversation::Message;
use goondan::model::ScriptedModel;
use goondan::name::TurnId;
use goondan::{Agent, Error, ErrorCode, Result};

use super::find::find;
use crate::args::InstanceRewindArgs;
use crate::output::{self, rewound};

pub(crate) fn rewind(args: &InstanceRewindArgs) -> Result<()> {
    let (store, id) = find(&args.selector)?;
    let Some(to) = &args.to else {
        let messages = store.read(&id)?.messages;
        let turns =
            rewound::turns(first_of_turns(&messages).map(|(turn, message)| (turn, message.text().into_owned())));
        return Err(Error::new(ErrorCode::USAGE, "no turn is named")
            .suggest(format!("name the last one that stays with `--to`; oldest first, there are\n{turns}")));
    };
    // No extension and no model is needed: extensions are told when the conversation is opened next.
    let agent = Agent::builder(id.agent.as_str()).model(ScriptedModel::new([])).store(store).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rewound = runtime.block_on(async {
        let instance = agent.instance(id.key.as_str()).await?;
        let rewound = instance.rewind(&TurnId::from(to.as_str())).await;
        let closed = instance.close().await;
        rewound.and_then(|rewound| closed.map(|()| rewound))
    })?;
    output::print(&rewound::page(&rewound, |_| false))
}

/// Returns the turns of a conversation, each with its first message.
fn first_of_turns(messages: &[Arc<Message>]) -> impl Iterator<Item = (&TurnId, &Message)> {
    let made = messages.iter().filter(|message| message.stands_for().is_none());
    let mut last = None;
    made.filter_map(move |message| {
        let turn = message.turn()?;
        (last.replace(turn) != Some(turn)).then_some((turn, &**message))
    })
}
