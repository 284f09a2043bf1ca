//! The yardstick for starting: a program that has a runtime of tokio like that of `goondan run`, and nothing to do.

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        runtime.block_on(async {});
    }
}
