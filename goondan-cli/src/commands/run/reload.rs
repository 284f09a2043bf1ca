//! Reloads, also while a turn runs.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use goondan::agent::ReloadRequest;

use super::conversation::OpenConversation;
use super::race::{Either, race};
use super::watch::Watcher;
use crate::output::Styled;

/// Reads the bundle again and continues the conversation with it. Returns what there is to say. `request` is that of
/// the extension that asks for it, if any. Another request begins the reload anew, which may wait for the end of the
/// step in which the other one was made.
pub(super) async fn reload(
    conversation: &mut OpenConversation,
    watcher: &mut Watcher,
    request: Option<ReloadRequest>,
    page: impl Fn() -> Styled,
) -> Styled {
    let mut requests = Vec::from_iter(request);
    loop {
        watcher.take_changes();
        let told = match race(watcher.requested(), conversation.reload_and_describe(page(), &mut requests)).await {
            Either::Left(another) => {
                requests.push(another);
                continue;
            }
            Either::Right(told) => told,
        };
        watcher.watch(conversation);
        return told;
    }
}

/// Runs `turn`. Whenever files change meanwhile, `conversation` is reloaded, so that the turn continues with its next
/// step on the new bundle, and `tell` gets what there is to say. A reload that has begun is completed after the turn.
pub(super) async fn while_reloading<T>(
    turn: impl Future<Output = T>,
    conversation: &mut OpenConversation,
    watcher: &mut Watcher,
    mut tell: impl FnMut(Styled),
    page: impl Fn() -> Styled,
) -> T {
    let reloading = Cell::new(false);
    let reloads = async {
        loop {
            let request = watcher.changed().await;
            reloading.set(true);
            tell(reload(conversation, watcher, request, &page).await);
            reloading.set(false);
        }
    };
    let (mut turn, mut reloads, mut output) = (pin!(turn), pin!(reloads), None);
    poll_fn(|cx| {
        if output.is_none()
            && let Poll::Ready(ended) = turn.as_mut().poll(cx)
        {
            output = Some(ended);
        }
        // It never ends.
        let _: Poll<()> = reloads.as_mut().poll(cx);
        output.take_if(|_| !reloading.get()).map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
