//! Tools for files below configured directories, and nowhere else.
//!
//! # Layout
//! - `place`: paths, which lead to places below the roots.
//! - `protect`, `own_files`: places that no tool changes.
//! - `guard`: decides whether a call may change its place.
//! - `read`, `list`, `write`: the work of the tools there. It blocks, so each call runs on a thread of its own.
//! - `diff`: a change as people see it; `shown`: the presentation of files that are read.

mod diff;
mod guard;
mod list;
mod own_files;
mod place;
mod protect;
mod read;
mod shown;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan::event::Shown;
use goondan::extension::BundleFiles;
use goondan::prelude::*;
use goondan::{ErrorCode, Value};

use guard::Guard;
use list::{List, Listed, Status};
use place::{Place, Roots};
use protect::Protected;
use read::{Content, Read};
use write::{Deleted, Edit, Edited, MadeDir, Write, Written};

/// The config of the extension.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The directories below which the tools work. A relative one starts at the directory of the bundle. Relative paths
    /// in calls start at the first. Defaults to the working directory of the conversation, which is empty at first.
    #[schemars(extend("x-goondan" = "root"))]
    pub roots: Vec<PathBuf>,
    /// Whether the tools also work in work trees that other extensions make, such as those of `changesets`. Relative
    /// paths in calls then start at the newest one that is open.
    pub work_trees: bool,
    /// Paths that the tools do not write, create or delete, besides those that are protected unless this list is empty:
    /// `.git*`, the files with which shells start, and the files that the bundle is made of. An entry is a path from a
    /// root, or a name at any depth if it has no `/`; `*` stands for any text and `?` for one character. What is
    /// below a protected directory is protected too. In work trees that other extensions make, only `.git*` is
    /// protected.
    #[schemars(extend("x-goondan" = "limit"))]
    pub protect: Option<Vec<String>>,
}

/// The input of `file-system__stat`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stat {
    /// The path of a file, a directory or a link. A link is not followed.
    path: String,
}

/// The input of `file-system__mkdir`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mkdir {
    /// The path of the directory.
    path: String,
    /// Whether to create the directories above it as well. Defaults to true.
    #[serde(default = "list::yes")]
    recursive: bool,
}

/// The input of `file-system__delete`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Delete {
    /// The path of a file, a link or a directory. Of a link, the link is deleted and not what it leads to.
    path: String,
    /// Whether to delete a directory with everything in it. Defaults to false: only an empty one.
    #[serde(default)]
    recursive: bool,
}

/// The extension.
#[derive(Debug)]
pub struct FileSystem {
    api: ExtensionApi,
    ctx: InitContext,
    work_trees: bool,
    protected: Arc<Protected>,
    /// `None` for the working directory of the conversation.
    roots: Option<Arc<[PathBuf]>>,
}

/// Lets the model read and write files, below directories that the config names.
#[goondan::extension(name = "file-system")]
impl FileSystem {
    #[init]
    fn new(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<Self> {
        let Config { roots, work_trees, protect } = config;
        let protected = Arc::new(Protected::new(protect));
        if work_trees {
            work_trees::note(&api)?;
        }
        if roots.is_empty() {
            return Ok(Self { api, ctx, work_trees, protected, roots: None });
        }
        let bundle = ctx.bundle_root().unwrap_or(Path::new("."));
        let canonical = |root: &PathBuf| {
            let root = bundle.join(root);
            root.canonicalize().ok().filter(|root| root.is_dir()).ok_or_else(|| {
                let message = format!("`roots` has {}, which is no directory", root.display());
                Error::new(ErrorCode::EXT_CONFIG, message).suggest("create it, or correct the path")
            })
        };
        let roots: Vec<PathBuf> = roots.iter().map(canonical).collect::<Result<_>>()?;
        Ok(Self { api, ctx, work_trees, protected, roots: Some(roots.into()) })
    }

    /// Reads a text file, up to 100000 bytes at once. If `truncated` is true there is more: go on at `nextOffset`.
    #[tool(effect = read, present = shown::read)]
    async fn read(&self, input: Read, ctx: &ToolContext<'_>) -> Result<Content> {
        self.at(ctx, input.path.clone(), move |place| read::read(place, &input)).await
    }

    /// Writes a file: a new one with the directories above it, or in place of an old one. To change a part of a file,
    /// use `file-system__edit`.
    // Not `idempotent`, because it can append.
    #[tool(present = "{path}")]
    async fn write(&self, input: Write, ctx: &ToolContext<'_>) -> Result<Written> {
        let (written, diff) =
            self.change(ctx, input.path.clone(), move |place, guard| write::write(place, guard, &input)).await?;
        self.show(diff);
        Ok(written)
    }

    /// Replaces a text in a file by another one. The text must occur exactly as it is in the file, and only once.
    #[tool(present = "{path}")]
    async fn edit(&self, input: Edit, ctx: &ToolContext<'_>) -> Result<Edited> {
        let (edited, diff) =
            self.change(ctx, input.path.clone(), move |place, guard| write::edit(place, guard, &input)).await?;
        self.show(diff);
        Ok(edited)
    }

    /// Lists what is in a directory, up to 1000 entries.
    #[tool(effect = read, present = shown::list)]
    async fn list(&self, input: List, ctx: &ToolContext<'_>) -> Result<Listed> {
        self.at(ctx, input.path.clone(), move |place| list::list(place, &input)).await
    }

    /// Tells whether there is something at a path, what it is, its size and when it was changed.
    #[tool(effect = read, present = "{path}")]
    async fn stat(&self, input: Stat, ctx: &ToolContext<'_>) -> Result<Status> {
        self.at(ctx, input.path, list::stat).await
    }

    /// Creates a directory. It is no error if it exists.
    #[tool(effect = idempotent, present = "{path}")]
    async fn mkdir(&self, input: Mkdir, ctx: &ToolContext<'_>) -> Result<MadeDir> {
        self.change(ctx, input.path, move |place, guard| write::mkdir(place, guard, input.recursive)).await
    }

    /// Deletes a file, a link or a directory.
    #[tool(effect = idempotent, present = "{path}")]
    async fn delete(&self, input: Delete, ctx: &ToolContext<'_>) -> Result<Deleted> {
        let (protected, bundle) = (self.protected.clone(), self.bundle_files()?);
        let delete = move |place: &Place| {
            Guard::new(place, &protected, bundle).check_deletion(input.recursive)?;
            write::delete(place, input.recursive)
        };
        self.at(ctx, input.path, delete).await
    }

    /// Shows the difference that a call would make to the person who is asked about it.
    #[middleware(toolCall, priority = 1200)]
    async fn preview(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.is_asked()
            && let Some(diff) = self.difference(ctx).await
        {
            ctx.show(Shown::difference(diff));
        }
        next.run(ctx).await
    }
}

impl FileSystem {
    fn show(&self, diff: Option<String>) {
        if let Some(diff) = diff {
            self.api.events().show(Shown::difference(diff));
        }
    }

    /// Changes something at a path that is not protected.
    async fn change<T: Send + 'static>(
        &self,
        ctx: &ToolContext<'_>,
        path: String,
        work: impl FnOnce(&Place, &Guard<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (protected, bundle) = (self.protected.clone(), self.bundle_files()?);
        let change = move |place: &Place| {
            let guard = Guard::new(place, &protected, bundle);
            guard.check()?;
            work(place, &guard)
        };
        self.at(ctx, path, change).await
    }

    /// Returns the files that the agent is made of, as far as they are protected.
    fn bundle_files(&self) -> Result<Arc<BundleFiles>> {
        if self.protected.is_off() { Ok(Arc::default()) } else { self.ctx.bundle_files() }
    }

    /// Does some work at a path, on a thread that may block.
    async fn at<T: Send + 'static>(
        &self,
        ctx: &ToolContext<'_>,
        path: String,
        work: impl FnOnce(&Place) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let roots = self.roots(|| ctx.workdir()).await?;
        tokio::task::spawn_blocking(move || work(&roots.place(&path)?)).await?
    }

    /// Returns the directories below which calls work.
    async fn roots<'w>(&self, workdir: impl FnOnce() -> Result<&'w Path>) -> Result<Roots> {
        let others = match &self.roots {
            Some(roots) => roots.clone(),
            None => Arc::new([workdir()?.to_owned()]),
        };
        let work_trees = if self.work_trees { work_trees::open(&self.api).await?.collect() } else { Vec::new() };
        Ok(Roots { work_trees, others })
    }

    /// Returns the difference that a call of this extension would make, as far as that is known.
    async fn difference(&self, ctx: &ToolCallContext<'_>) -> Option<String> {
        let args = || Value::Object(ctx.args().clone());
        let preview: Box<dyn FnOnce(Roots) -> Option<String> + Send> = match ctx.tool_name() {
            "file-system__write" => {
                let input = Write::deserialize(args()).ok()?;
                Box::new(move |roots| input.preview(&roots.place(&input.path).ok()?))
            }
            "file-system__edit" => {
                let input = Edit::deserialize(args()).ok()?;
                Box::new(move |roots| input.preview(&roots.place(&input.path).ok()?))
            }
            _ => return None,
        };
        let roots = self.roots(|| ctx.workdir()).await.ok()?;
        tokio::task::spawn_blocking(move || preview(roots)).await.ok()?
    }
}
