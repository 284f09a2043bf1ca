//! Files that programs lock while they use something together.

use std::fs::File;
use std::path::PathBuf;

use goondan::Result;

/// Makes the file, and waits until no other program has locked it. It is locked until it is dropped.
pub(crate) async fn lock(path: PathBuf) -> Result<File> {
    let locked = tokio::task::spawn_blocking(move || {
        let file = File::create(path)?;
        file.lock()?;
        Ok::<_, std::io::Error>(file)
    });
    Ok(locked.await??)
}
