//! The yardstick of a start: a program with a tokio runtime like that of `goondan run`, which does nothing.

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        runtime.block_on(async {});
    }
}
