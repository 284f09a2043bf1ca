//! The Agent-User Interaction protocol (AG-UI): front ends that are written for it talk to an agent unmodified.

mod events;
pub(crate) mod input;

use axum::extract::{Path, State};
use axum::response::Response;
use goondan_core::EventSource;

use crate::body::Body;
use crate::caller::Caller;
use crate::children::WithChildren;
use crate::front_end::Teller;
use crate::native::event_id;
use crate::native::instances::decided;
use crate::problem::Result;
use crate::service::Service;
use crate::tokens::Right;
use crate::watch::stream;
use events::Run;
use input::{Asked, RunInput};

/// Runs an agent: answers the newest message of a thread, or goes on with its interrupts.
pub(crate) async fn run(
    State(service): State<Service>,
    caller: Caller,
    Path(agent): Path<String>,
    children: WithChildren,
    Body(input): Body<RunInput>,
) -> Result<Response> {
    let asked = input.asked()?;
    let (thread, run) = (input.thread_id.clone(), input.run_id.clone());
    let events = Teller::new(Run::new(&thread, &run, input.into_history()), format!("{run}-"));
    let chat = (agent.as_str(), thread.as_str());
    Ok(match asked {
        Asked::Input(mut event) => {
            let (agent, key) = caller.chat(&service, chat, Right::Turn)?;
            event.source = EventSource::new("connector", "ag-ui");
            event.auth = caller.auth();
            let event = event.with_id(event_id("ag-ui", &caller, (agent.as_str(), key.as_str()), &run));
            let (_, log) = service.run(caller.principal(), agent, key, event, children).await?;
            stream(log, 0, events)
        }
        Asked::Decisions { decisions, calls } => {
            let (agent, key) = caller.chat(&service, chat, Right::Decide)?;
            let (_, log) = decided(&service, &caller, (agent, key), decisions, children).await?;
            stream(log, 0, events.going_on(calls))
        }
    })
}
