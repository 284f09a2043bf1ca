//! The environment of a child process, without what is not meant for it.
// ENV-01

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::process::Command;
use std::sync::Arc;

use goondan_lock::Lock;

/// The variables that a server gets which was not made for this program: those of the SDKs of the Model Context
/// Protocol.
// D-44
const BASIC: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// The words in the names of keys.
const SECRET: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// The prefix of the names of this program's variables.
const OWN: &str = "GOONDAN_";

/// The environment of child processes: the part of this process's environment that they inherit. It starts all
/// commands.
///
/// ```
/// use process::Environment;
///
/// let environment = Environment::without_secrets(|| Some(["MY_SERVICE".to_owned()].into())).with(["GH_TOKEN"]);
/// let mut make = environment.command("make");
/// assert!(make.arg("test").get_envs().all(|(name, _)| name != "MY_SERVICE"));
/// ```
#[derive(Clone, Debug)]
pub struct Environment {
    base: Base,
    /// The names of further variables.
    also: Vec<String>,
}

#[derive(Clone)]
enum Base {
    Basic,
    Only(Vec<String>),
    WithoutSecrets(SecretVariables),
}

/// Returns the names of variables with secrets.
type SecretVariables = Arc<dyn Fn() -> Option<Arc<[String]>> + Send + Sync>;

impl Environment {
    /// The environment of programs that were not made for this one, such as servers: what finds and starts other
    /// programs, which are the variables `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM` and `USER`.
    pub fn basic() -> Self {
        Self { base: Base::Basic, also: Vec::new() }
    }

    /// The environment of commands that work in the place of the user: all variables but those that `names` returns,
    /// the program's own, `GOONDAN_…`, and those whose names have `KEY`, `TOKEN`, `SECRET`, `PASSWORD` or `CREDENTIAL`
    /// in them, in upper or lower case. `names` is called for each command; an extension passes
    /// `InitContext::secret_variables`. If it returns `None`, the names are not known, and the environment is
    /// [`Environment::basic`].
    pub fn without_secrets(names: impl Fn() -> Option<Arc<[String]>> + Send + Sync + 'static) -> Self {
        Self { base: Base::WithoutSecrets(Arc::new(names)), also: Vec::new() }
    }

    /// Replaces what is inherited by the variables with these names, unless it is `None`.
    #[must_use]
    pub fn or_only(mut self, names: Option<Vec<String>>) -> Self {
        if let Some(names) = names {
            self.base = Base::Only(names);
        }
        self
    }

    /// Adds the variables with these names, if they are set.
    #[must_use]
    pub fn with(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.also.extend(names.into_iter().map(Into::into));
        self
    }

    /// Returns a command with this environment. For tokio, write `.into()`.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let passes = self.rule();
        command.env_clear().envs(env::vars_os().filter(|(name, value)| passes(name, value)));
        command
    }

    /// Returns what the function of [`Environment::without_secrets`] returns, unless that was replaced.
    pub fn secret_variables(&self) -> Option<Arc<[String]>> {
        match &self.base {
            Base::WithoutSecrets(names) => names(),
            Base::Basic | Base::Only(_) => None,
        }
    }

    /// Returns the names of the variables of this process that commands do not get, sorted.
    pub fn withheld(&self) -> Vec<String> {
        let passes = self.rule();
        let withheld = env::vars_os().filter(|(name, value)| !passes(name, value));
        let names: BTreeSet<_> = withheld.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        names.into_iter().collect()
    }

    /// Returns a line for the log that lists the variables that commands do not get, if there are any and
    /// [`Environment::or_only`] has no list. The same line is returned once in a process.
    pub fn note(&self) -> Option<String> {
        static NOTED: Lock<BTreeSet<Vec<String>>> = Lock::new(BTreeSet::new());
        // What a list leaves out is meant.
        let withheld = if let Base::Only(_) = self.base { Vec::new() } else { self.withheld() };
        if withheld.is_empty() || !NOTED.lock().insert(withheld.clone()) {
            return None;
        }
        Some(format!("commands do not get these variables of the environment: {}", withheld.join(", ")))
    }

    /// Returns whether a variable is inherited.
    fn rule(&self) -> impl Fn(&OsStr, &OsStr) -> bool {
        let secrets = self.secret_variables();
        move |name, value| {
            // A name that is no text may still have `KEY` in it.
            let text = &*name.to_string_lossy();
            if self.also.iter().any(|also| also == text) {
                return true;
            }
            match (&self.base, &secrets) {
                (Base::Only(names), _) => names.iter().any(|only| only == text),
                (Base::WithoutSecrets(_), Some(secrets)) => {
                    !is_secret(text) && !secrets.iter().any(|name| name == text)
                }
                (Base::Basic | Base::WithoutSecrets(_), _) => BASIC.contains(&text) && !is_function(value),
            }
        }
    }
}

/// Returns whether a variable has a secret, by its name.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.starts_with(OWN) || SECRET.iter().any(|part| name.contains(part))
}

/// Returns whether a value is a function of a shell, which a shell would define.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic => f.write_str("Basic"),
            Self::Only(names) => f.debug_tuple("Only").field(names).finish(),
            Self::WithoutSecrets(_) => f.write_str("WithoutSecrets"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys_are_known_in_any_case() {
        for name in ["OPENAI_API_KEY", "gh_token", "AWS_SECRET_ACCESS_ID", "PGPASSWORD", "Credentials", "GOONDAN_X"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "CARGO_HOME", "SSH_AUTH_SOCK", "MY_GOONDAN_X", "PASS"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_name_that_is_no_text_is_judged_by_the_rest_of_it() {
        use std::os::unix::ffi::OsStrExt;

        let environment = Environment::without_secrets(|| Some(Arc::new([])));
        let passes = environment.rule();
        let passed = |name: &[u8]| passes(OsStr::from_bytes(name), OsStr::new("x"));
        assert!(!passed(b"OPENAI_KEY\xff") && !passed(b"\xffAPI_TOKEN") && passed(b"PLAIN\xff"));
    }

    #[test]
    fn functions_are_not_passed_on() {
        assert!(is_function(OsStr::new("() { :; }")) && !is_function(OsStr::new("/bin:()")));
    }
}
