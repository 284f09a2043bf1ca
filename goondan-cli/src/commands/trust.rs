//! Whether a bundle may run: the agreement of a person, and the question. Agreements are kept below the state root; a
//! mark in the bundle would count for nothing.
// TRUST-01

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use goondan::bundle::Plugins;
use goondan::store::{agreements_dir, state_root};
use goondan::{Bundle, Error, ErrorCode, Result};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::bundle;
use super::capabilities::{Lines, Listed};
use crate::args::{BundleArgs, TrustArgs};
use crate::outcome::Outcome;
use crate::output::{self, Stream, diagnostics};
use crate::private_file;

/// The agreements below a state root.
pub(crate) struct Agreements {
    directory: PathBuf,
}

/// The agreement to run one bundle.
#[derive(Default, Serialize, Deserialize)]
struct Agreement {
    /// For people; the name of the file decides.
    bundle: String,
    lines: BTreeSet<String>,
}

impl Agreements {
    pub(crate) fn below(state_root: &Path) -> Self {
        Self { directory: agreements_dir(state_root) }
    }

    /// Returns the file for a bundle or a directory, by its path without links.
    fn file(&self, kind: &str, path: &Path) -> PathBuf {
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.directory.join(kind).join(format!("{digest}.json"))
    }

    /// Returns the agreement to a bundle. A file that cannot be read has nothing.
    fn of(&self, bundle: &Path) -> BTreeSet<String> {
        let file = self.file("bundles", bundle);
        let text = if self.is_ours(&file) { fs::read(file).unwrap_or_default() } else { Vec::new() };
        serde_json::from_slice::<Agreement>(&text).unwrap_or_default().lines
    }

    /// Returns whether all bundles in a directory around `path` are agreed to.
    fn has_directory_around(&self, path: &Path) -> bool {
        path.ancestors().any(|directory| self.is_ours(&self.file("directories", directory)))
    }

    /// Returns whether a file of an agreement is there and counts: it and its directories are of this user, and no one
    /// else can write them. Otherwise anyone who shares the state root could agree.
    fn is_ours(&self, file: &Path) -> bool {
        let Ok(metadata) = file.symlink_metadata() else { return false };
        let is_ours = metadata.is_file()
            && [Some(file), file.parent(), Some(&*self.directory)].into_iter().flatten().all(only_we_write);
        if !is_ours {
            let file = file.display();
            tracing::warn!(%file, "an agreement does not count: another user could have written it");
        }
        is_ours
    }

    /// Agrees to the present abilities of a bundle, and nothing else.
    pub(crate) fn agree(&self, bundle: &Path, lines: BTreeSet<String>) -> Result<()> {
        self.write("bundles", bundle, lines)
    }

    fn agree_to_directory(&self, directory: &Path) -> Result<()> {
        self.write("directories", directory, BTreeSet::new())
    }

    fn write(&self, kind: &str, path: &Path, lines: BTreeSet<String>) -> Result<()> {
        let file = self.file(kind, path);
        let text = serde_json::to_vec_pretty(&Agreement { bundle: path.to_string_lossy().into_owned(), lines })?;
        let new = file.with_extension(std::process::id().to_string());
        let written = private_directory(&self.directory.join(kind))
            .and_then(|()| private_file::create(&new)?.write_all(&text))
            .and_then(|()| fs::rename(&new, &file));
        written.map_err(|error| Error::new(ErrorCode::IO, format!("cannot write {}", file.display())).caused_by(error))
    }
}

/// Makes a directory that only this user can read, unless there is one.
fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns whether a file or directory is of this user, and no one else can write it.
fn only_we_write(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0)
}

/// Returns a path without links, which names a bundle or a directory.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .map_err(|error| Error::new(ErrorCode::IO, format!("cannot read {}", path.display())).caused_by(error))
}

/// Returns if the bundle may run: it does nothing outside but ask its models, or a person has agreed to its abilities.
/// On a terminal, a person is asked, unless `asks` is false.
///
/// # Errors
/// `E_BUNDLE_TRUST`, and those of [`Lines::of`].
pub(crate) fn require(bundle: &Bundle, path: &Path, root: &Path, asks: bool) -> Result<()> {
    let lines = Lines::of(bundle, &Plugins::new())?;
    if lines.are_harmless {
        return Ok(());
    }
    let (path, agreements) = (canonical(path)?, Agreements::below(root));
    let known = agreements.of(&path);
    let new: Vec<_> = lines.all.difference(&known).collect();
    if new.is_empty() || agreements.has_directory_around(&path) {
        return Ok(());
    }
    let what = if known.is_empty() { "can do this outside of its conversations" } else { "can do this now too" };
    let list: String = new.iter().map(|line| format!("\n  {line}")).collect();
    let message = format!("the bundle {} {what}:{list}", path.display());
    let can_ask = asks && io::stdin().is_terminal() && Stream::Err.is_terminal();
    if can_ask && agrees(&message)? {
        return agreements.agree(&path, lines.all);
    }
    let remedy = "if that is right, run `goondan trust` with the bundle, or pass `--trust` for this once; `goondan check \
                  --capabilities` shows all that it can do";
    Err(Error::new(ErrorCode::BUNDLE_TRUST, format!("no user has agreed that {message}")).suggest(remedy))
}

/// Asks the person at the terminal.
fn agrees(message: &str) -> Result<bool> {
    output::eprint(&format!("{message}\nRun it? [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// `goondan trust`: agrees to the abilities of a bundle, or to all bundles in a directory.
pub(crate) fn trust(args: &TrustArgs) -> Result<Outcome> {
    let agreements = Agreements::below(&state_root(args.state_root.as_deref())?);
    if let Some(directory) = &args.dir {
        let directory = canonical(directory)?;
        agreements.agree_to_directory(&directory)?;
        output::print(&format!("Agreed to all bundles in {}.\n", directory.display()))?;
        return Ok(Outcome::Done);
    }
    let path = args.path.clone().unwrap_or_default();
    let named = BundleArgs { path, allow_absolute_plugins: args.allow_absolute_plugins };
    let plugins = Plugins::new();
    let bundle = match bundle::read(&named, &plugins) {
        Ok(bundle) => bundle,
        Err(found) => return diagnostics::refused(found.into(), false),
    };
    let path = canonical(&named.path)?;
    agreements.agree(&path, Lines::of(&bundle, &plugins)?.all)?;
    output::print(&format!("{}Agreed to run {}.\n", Listed::of(&bundle, &plugins)?, path.display()))?;
    Ok(Outcome::Done)
}
