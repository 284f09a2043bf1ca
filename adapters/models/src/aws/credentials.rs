//! Keys of AWS: in the environment, or in the file of profiles.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use goondan_core::{BundleFile, BundleFileError, Secret};

use crate::http::{Failure, FailureKind};

const TOKEN: &str = "AWS_BEARER_TOKEN_BEDROCK";
const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION: &str = "AWS_SESSION_TOKEN";
const PROFILE: &str = "AWS_PROFILE";
const FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";

/// The variables of the environment that are read.
pub(crate) const VARIABLES: [&str; 6] = [TOKEN, KEY_ID, SECRET_KEY, SESSION, PROFILE, FILE];

/// The largest file of profiles that is read.
const LARGEST: u64 = 1 << 20;

/// Keys that sign requests.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) secret: Secret,
    /// The token of keys that expire.
    pub(super) session: Option<Secret>,
}

/// Credentials that were found. A token is sent as it is, and its owner needs no keys.
#[derive(Debug)]
pub(super) enum Found {
    Token(Secret),
    Keys(Keys),
    /// Nothing, and where it was searched.
    Nothing(String),
}

/// Credentials that must be masked.
pub(super) struct Credentials {
    _secrets: [Option<Secret>; 2],
}

impl Found {
    pub(super) fn into_credentials(self) -> Option<Credentials> {
        let secrets = match self {
            Self::Token(token) => [Some(token), None],
            Self::Keys(keys) => [Some(keys.secret), keys.session],
            Self::Nothing(_) => return None,
        };
        Some(Credentials { _secrets: secrets })
    }
}

/// Searches the environment and then the file of profiles. `variable` returns a variable of the environment.
///
/// # Errors
/// When the environment has half a pair of keys, or the file cannot be read. No message has a key.
pub(super) fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Found, Failure> {
    let variable = |name: &str| {
        let value = variable(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    if let Some(token) = variable(TOKEN) {
        return Ok(Found::Token(Secret::new(token)));
    }
    match (variable(KEY_ID), variable(SECRET_KEY)) {
        (Some(id), Some(secret)) => {
            let session = variable(SESSION).map(Secret::new);
            return Ok(Found::Keys(Keys { id, secret: Secret::new(secret), session }));
        }
        (None, None) => {}
        (id, _) => {
            let (set, missing) = if id.is_some() { (KEY_ID, SECRET_KEY) } else { (SECRET_KEY, KEY_ID) };
            return Err(refused(format!("the variable {set} is set, and {missing} is not")));
        }
    }
    let named = variable(PROFILE);
    let profile = named.as_deref().unwrap_or("default");
    let home = || variable("HOME").or_else(|| variable("USERPROFILE"));
    let file = variable(FILE).map(PathBuf::from).or_else(|| Some(PathBuf::from(home()?).join(".aws/credentials")));
    let text = file.as_deref().map_or(Ok(None), read);
    let text = text.map_err(|error| refused("the file of the profiles of AWS cannot be read").caused_by(error))?;
    let shown = file.map(|file| file.display().to_string()).unwrap_or_else(|| "~/.aws/credentials".to_owned());
    match text.as_deref().and_then(|text| keys_in(text, profile)) {
        Some((id, secret, session)) => {
            Ok(Found::Keys(Keys { id: id.to_owned(), secret: Secret::new(secret), session: session.map(Secret::new) }))
        }
        None => Ok(Found::Nothing(format!(
            "there are no keys of AWS: neither {TOKEN} nor {KEY_ID} and {SECRET_KEY} are set, and the profile \
             `{profile}` has none in `{shown}`"
        ))),
    }
}

fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(FailureKind::Auth, message)
}

/// Returns the text of a file, or nothing if there is none.
fn read(path: &Path) -> Result<Option<String>, BundleFileError> {
    match BundleFile::open(path).and_then(|file| file.read_whole(LARGEST)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(BundleFileError::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the keys of a profile: their id, the secret one, and the token of a session.
fn keys_in<'a>(text: &'a str, profile: &str) -> Option<(&'a str, &'a str, Option<&'a str>)> {
    let (mut id, mut secret, mut session) = (None, None, None);
    let mut is_own = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            is_own = name.trim() == profile;
        } else if let (true, Some((name, value))) = (is_own, line.split_once('=')) {
            let slot = match name.trim() {
                "aws_access_key_id" => &mut id,
                "aws_secret_access_key" => &mut secret,
                "aws_session_token" => &mut session,
                _ => continue,
            };
            *slot = Some(value.trim()).filter(|value| !value.is_empty());
        }
    }
    Some((id?, secret?, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        match find(variable) {
            Ok(Found::Token(token)) => Ok(format!("token {}", token.expose())),
            Ok(Found::Keys(Keys { id, secret, session })) => {
                let session = session.as_ref().map_or("none", Secret::expose);
                Ok(format!("{id} {} {session}", secret.expose()))
            }
            Ok(Found::Nothing(why)) => Err(why),
            Err(failure) => Err(failure.reason().into_owned()),
        }
    }

    #[test]
    fn the_environment_is_before_the_file_and_a_token_before_keys() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let file = "# keys\n[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key=file-secret-0\n\n\
                    [ work ]\nregion = eu-west-1\naws_access_key_id=AKIDWORK\naws_secret_access_key = work+/secret=\n\
                    aws_session_token = work-session\n[half]\naws_access_key_id = AKIDHALF\n";
        std::fs::write(&path, file).unwrap();
        let file = (FILE, path.to_str().unwrap());
        let keys = [(KEY_ID, "AKIDENV"), (SECRET_KEY, " env-secret-00\n"), file];
        assert_eq!(found(&keys).unwrap(), "AKIDENV env-secret-00 none");
        assert_eq!(
            found(&[&keys[..], &[(SESSION, "env-session")]].concat()).unwrap(),
            "AKIDENV env-secret-00 env-session"
        );
        assert_eq!(found(&[&keys[..], &[(TOKEN, "env-token-000")]].concat()).unwrap(), "token env-token-000");
        assert_eq!(found(&[file]).unwrap(), "AKIDFILE file-secret-0 none");
        assert_eq!(found(&[file, (KEY_ID, " ")]).unwrap(), "AKIDFILE file-secret-0 none");
        assert_eq!(found(&[file, (PROFILE, "work")]).unwrap(), "AKIDWORK work+/secret= work-session");
        for profile in ["half", "other"] {
            let why = found(&[file, (PROFILE, profile)]).unwrap_err();
            assert!(why.contains(&format!("profile `{profile}` has none in `{}`", path.display())), "{why}");
        }
    }

    #[test]
    fn the_file_is_in_the_home_of_the_user_and_need_not_exist() {
        let home = tempfile::tempdir().unwrap();
        let variables = [("HOME", home.path().to_str().unwrap())];
        assert!(found(&variables).unwrap_err().contains(".aws/credentials"));
        assert!(found(&[]).unwrap_err().contains("~/.aws/credentials"));
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        let file = "[default]\naws_access_key_id=AKIDHOME\naws_secret_access_key=home-secret-0\n";
        std::fs::write(home.path().join(".aws/credentials"), file).unwrap();
        assert_eq!(found(&variables).unwrap(), "AKIDHOME home-secret-0 none");
    }

    #[test]
    fn half_a_pair_and_a_file_that_cannot_be_read_are_failures_without_the_key() {
        let why = found(&[(SECRET_KEY, "env-secret-00")]).unwrap_err();
        assert_eq!(why, "the variable AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not");
        let directory = tempfile::tempdir().unwrap();
        let why = found(&[(FILE, directory.path().to_str().unwrap())]).unwrap_err();
        assert_eq!(why, "the file of the profiles of AWS cannot be read");
    }
}
