//! The skills of a conversation, and which of them are open.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use goondan::prelude::*;
use goondan_text::{Excerpt, Place};
use process::Environment;
use tokio::task::spawn_blocking;

use crate::config::Config;
use crate::context::Context;
use crate::discovery::{Found, Skill};

/// The most bytes of a file with instructions that are read.
const LONGEST: u64 = 4_000_000;

/// The skills of a conversation.
pub(crate) struct Collection {
    pub(crate) api: ExtensionApi,
    pub(crate) config: Config,
    /// That of commands.
    pub(crate) environment: Environment,
    pub(crate) directories: Vec<PathBuf>,
    /// The root until a repository becomes available.
    pub(crate) home: PathBuf,
    found: RwLock<Arc<Found>>,
    /// Held by the scan that is running.
    scanning: tokio::sync::Mutex<()>,
}

/// The state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct State {
    /// The names of the open skills, in the order in which they were opened.
    pub(crate) open: Vec<String>,
    /// The last repository that became available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<PathBuf>,
}

impl Collection {
    pub(crate) fn new(
        api: ExtensionApi,
        config: Config,
        environment: Environment,
        directories: Vec<PathBuf>,
        home: PathBuf,
    ) -> Self {
        let (found, scanning) = Default::default();
        Self { api, config, environment, directories, home, found, scanning }
    }

    pub(crate) fn state(&self) -> Result<State> {
        Ok(self.api.state().get()?.unwrap_or_default())
    }

    pub(crate) fn found(&self) -> Arc<Found> {
        Arc::clone(&self.found.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Searches the directories below the current root.
    pub(crate) async fn scan(&self) -> Result<()> {
        // Of two scans, the later one has the later root.
        let _scanning = self.scanning.lock().await;
        let root = self.state()?.root.unwrap_or_else(|| self.home.clone());
        let directories = self.directories.clone();
        let found = spawn_blocking(move || Found::scan(&root, &directories)).await?;
        found.warnings.iter().for_each(|warning| self.api.logger().warn(warning));
        self.api.logger().with("skills", found.skills.len()).info("searched for skills");
        *self.found.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(found);
        Ok(())
    }

    /// Returns the skill called `name`.
    ///
    /// # Errors
    /// `E_SKILLS_UNKNOWN` with similar names.
    // PATTERN-SKILL-14
    pub(crate) fn get(&self, name: &str) -> Result<Skill> {
        let found = self.found();
        found.skills.get(name).cloned().ok_or_else(|| {
            let mut near: Vec<_> =
                found.skills.keys().map(|other| (strsim::jaro_winkler(name, other), other)).collect();
            near.retain(|(likeness, _)| *likeness > 0.75);
            near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            let near: Vec<_> = near.iter().take(3).map(|(_, other)| format!("`{other}`")).collect();
            let error = Error::new("E_SKILLS_UNKNOWN", format!("there is no skill `{name}`"));
            match near.is_empty() {
                true => error.suggest("`skills__list` lists the skills"),
                false => error.suggest(format!("did you mean {}?", near.join(" or "))),
            }
        })
    }

    /// Returns the instructions of a skill.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub(crate) async fn content(&self, skill: &Skill) -> Result<String> {
        let (found, skill, limit) = (self.found(), skill.clone(), self.config.max_characters);
        spawn_blocking(move || match found.read(&skill.path, LONGEST) {
            Ok(content) => Ok(Excerpt { text: &content, place: &Place::File(skill.path) }.beginning(limit)),
            Err(error) => Err(Error::msg(format!("{} cannot be read: {error}", skill.path.display()))),
        })
        .await?
    }

    /// Notes that a skill is open.
    ///
    /// # Errors
    /// `E_SKILLS_OPEN` when too many are.
    pub(crate) fn open(&self, name: &str) -> Result<()> {
        let most = self.config.max_open;
        self.api.state().update(|state: &mut State| {
            if state.open.iter().any(|open| open == name) {
                return Ok(());
            }
            if state.open.len() >= most {
                let message = format!("no more than {most} can be open, and these are: {}", state.open.join(", "));
                return Err(Error::new("E_SKILLS_OPEN", message).suggest("close one with `skills__close`"));
            }
            state.open.push(name.to_owned());
            Ok(())
        })?
    }

    /// Notes that a skill is not open, and returns whether it was.
    // PATTERN-SKILL-15
    pub(crate) fn close(&self, name: &str) -> Result<bool> {
        self.api.state().update(|state: &mut State| {
            let before = state.open.len();
            state.open.retain(|open| open != name);
            state.open.len() < before
        })
    }

    /// Puts the skills into the model's context.
    pub(crate) async fn show(&self, ctx: &mut StepContext<'_>) -> Result<()> {
        let mut context = Context::default();
        context.list(&self.found());
        if ctx.is_repeated() {
            // RESUME-01: what calls of the step have opened since is shown from the next step on.
            context.hide_tools(ctx);
            return Ok(());
        }
        for name in self.state()?.open {
            let content = match self.get(&name) {
                Ok(skill) => self.content(&skill).await.map(|content| (skill, content)),
                Err(error) => Err(error),
            };
            match content {
                Ok((skill, content)) => context.open(&name, &skill, &content),
                Err(error) => {
                    self.close(&name)?;
                    let note = format!("The skill `{name}` was closed: {error}");
                    self.api.logger().warn(&note);
                    ctx.emit(MessageEvent::append(Message::system(note)));
                }
            }
        }
        context.show(ctx);
        Ok(())
    }
}
