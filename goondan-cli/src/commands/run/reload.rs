//! Reloads while a turn runs.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::conversation::OpenConversation;
use super::watch::FileWatcher;
use crate::output::Styled;

/// Runs `turn`. Whenever files change meanwhile, `conversation` is reloaded, so that the turn continues with its next
/// step on the new bundle, and `tell` gets what there is to say. A reload that has begun is completed after the turn.
pub(super) async fn while_reloading<T>(
    turn: impl Future<Output = T>,
    conversation: &mut OpenConversation,
    watcher: &mut FileWatcher,
    mut tell: impl FnMut(Styled),
    page: impl Fn() -> Styled,
) -> T {
    let reloading = Cell::new(false);
    let reloads = async {
        loop {
            watcher.changed().await;
            reloading.set(true);
            tell(conversation.reload_and_describe(page()).await);
            watcher.watch(conversation.files());
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
