//! The Agent-User Interaction protocol (AG-UI): front ends that are written for it talk to an agent unmodified.

mod events;
pub(crate) mod input;

use axum::response::Response;
use goondan_core::EventSource;

use crate::front_end::Teller;
use crate::native::event_id;
use crate::native::instances::decided;
use crate::problem::Result;
use crate::request::Request;
use crate::tokens::Right;
use crate::watch::stream;
use events::Run;
use input::{Asked, RunInput};

/// Runs an agent: answers the newest message of a thread, or goes on with its interrupts.
pub(crate) async fn run(request: Request) -> Result<Response> {
    let Request { service, caller, .. } = &request;
    let children = request.children()?;
    let input: RunInput = request.json()?;
    let asked = input.asked()?;
    let (thread, run) = (input.thread_id.clone(), input.run_id.clone());
    let events = Teller::new(Run::new(&thread, &run, input.into_history()), format!("{run}-"));
    Ok(match asked {
        Asked::Input(mut event) => {
            let (agent, key) = request.chat(&thread, Right::Turn)?;
            event.source = EventSource::new("connector", "ag-ui");
            event.auth = caller.auth();
            let event = event.with_id(event_id("ag-ui", caller, (agent.as_str(), key.as_str()), &run));
            let (_, log) = service.run(caller.principal(), agent, key, event, children).await?;
            stream(log, 0, events)
        }
        Asked::Decisions { decisions, calls } => {
            let conversation = request.chat(&thread, Right::Decide)?;
            let (_, log) = decided(&request, conversation, decisions).await?;
            stream(log, 0, events.going_on(calls))
        }
    })
}
